package plane_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/plane"
)

// slowHost is a host that answers when it is let go, and a set with two calls for it, of which a consumer has one.
func slowHost(t *testing.T) (set *plane.Set, asked chan string, release chan struct{}) {
	t.Helper()
	asked, release = make(chan string, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		<-release
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)
	}))
	t.Cleanup(server.Close)
	set, err := plane.New(plane.Config{
		Kcp: &rest.Config{Host: server.URL}, Host: &rest.Config{Host: server.URL}, Endpoints: endpoint{server.URL},
		Limits: budget.Limits{budget.CallsPerPlane: 2, budget.CallsPerConsumer: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, asked, release
}

// TestOneConsumerLeavesCallsToOthers has one consumer ask a slow host for more than it may, and then another one.
func TestOneConsumerLeavesCallsToOthers(t *testing.T) {
	set, asked, release := slowHost(t)
	var calls sync.WaitGroup
	get := func(consumer logicalcluster.Name) {
		at, err := set.For(t.Context(), v1alpha1.TargetHost, v1alpha1.ExportKey{Cluster: "provider"}, consumer)
		if err != nil {
			t.Fatal(err)
		}
		calls.Go(func() {
			_, err := at.Get(t.Context(), plane.Object{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "default", Name: consumer.String()})
			if err != nil {
				t.Errorf("%s: %v", consumer, err)
			}
		})
	}
	get("greedy")
	expectAsked(t, asked, "greedy")
	for range 5 {
		get("greedy")
	}
	get("modest")
	expectAsked(t, asked, "modest")
	close(release)
	calls.Wait()
}

func expectAsked(t *testing.T, asked <-chan string, want string) {
	t.Helper()
	select {
	case got := <-asked:
		if got != want {
			t.Fatalf("the host is asked by %s, want %s", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("the host isn't asked by %s", want)
	}
}

// TestACallThatWaitsInVainNamesTheBound fills a consumer's calls and makes another.
func TestACallThatWaitsInVainNamesTheBound(t *testing.T) {
	set, asked, release := slowHost(t)
	at, err := set.For(t.Context(), v1alpha1.TargetHost, v1alpha1.ExportKey{Cluster: "provider"}, "greedy")
	if err != nil {
		t.Fatal(err)
	}
	object := plane.Object{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "default", Name: "greedy"}
	var first sync.WaitGroup
	first.Go(func() { _, _ = at.Get(t.Context(), object) })
	expectAsked(t, asked, "greedy")
	_, err = at.Get(t.Context(), object)
	if !budget.IsBusy(err) || !strings.Contains(err.Error(), "--max-calls-per-plane") {
		t.Errorf("got %v, want that it is busy", err)
	}
	close(release)
	first.Wait()
}

// TestGiantDocumentsAreRefused resolves a kind whose document is larger than is read.
func TestGiantDocumentsAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/openapi/v3"):
			fmt.Fprint(w, `{"paths":{"apis/example.org/v1":{"serverRelativeURL":"/openapi/v3/apis/example.org/v1?hash=A"}}}`)
		case strings.HasSuffix(r.URL.Path, "/openapi/v3/apis/example.org/v1"):
			fmt.Fprintf(w, `{"info":{"title":"%s"}}`, strings.Repeat("x", 1<<20))
		default:
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[{"name":"widgets","kind":"Widget","namespaced":true}]}`)
		}
	}))
	defer server.Close()
	set, err := plane.New(plane.Config{
		Kcp: &rest.Config{Host: server.URL}, Endpoints: endpoint{server.URL}, Limits: budget.Limits{budget.DocumentBytes: 1 << 16},
	})
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := set.Schemas(t.Context(), v1alpha1.TargetProvider, v1alpha1.ExportKey{Cluster: "provider"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = schemas.Resolve(t.Context(), schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"})
	if err == nil || !strings.HasPrefix(err.Error(), budget.Prefix) || !strings.Contains(err.Error(), "--max-openapi-bytes") {
		t.Errorf("got %v, want a bound to be named", err)
	}
}
