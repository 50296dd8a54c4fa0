package apiserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/budget"
)

// startShared has places for four reads, of which one cluster gets one.
func startShared(t *testing.T) (*bed, *slowStorage) {
	t.Helper()
	b := start(t, func(o *apiserver.Options) {
		o.Limits[budget.Reads], o.Limits[budget.ReadsPerConsumer], o.Limits[budget.WatchesPerConsumer] = 4, 1, 1
	})
	slow := &slowStorage{mainStorage: mainStorage{b.store.Main}, entered: make(chan string, 1000), release: make(chan struct{})}
	served := servedAs(export, b.store)
	served.Storage = map[string]rest.Storage{gvr.Resource: slow}
	b.catalog.Set(served)
	return b, slow
}

// ask sends a request as the shard, and returns code and Status.
func ask(t *testing.T, client *http.Client, request *http.Request) metav1.Status {
	t.Helper()
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return metav1.Status{}
	}
	defer response.Body.Close()
	var said metav1.Status
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		t.Errorf("%s %s: %v", request.Method, request.URL, err)
	}
	said.Code = int32(response.StatusCode)
	return said
}

func expectBound(t *testing.T, said metav1.Status, code int32, bound *budget.Bound) {
	t.Helper()
	if said.Code != code || !strings.Contains(said.Message, budget.Prefix+bound.Of) || !strings.Contains(said.Message, bound.Name) {
		t.Errorf("answered %d: %s\nwant %d, naming %s", said.Code, said.Message, code, bound.Name)
	}
}

func TestOneClusterLeavesPlacesToOthers(t *testing.T) {
	b, slow := startShared(t)
	client := b.library(t)
	var calls sync.WaitGroup
	get := func(cluster string) {
		calls.Go(func() {
			if response, err := client.Get(b.widgetURL(cluster)); err == nil {
				response.Body.Close()
			}
		})
	}
	get(consumer.String())
	expect(t, slow.entered, consumer.String())
	for range 10 {
		get(consumer.String())
	}
	get(otherConsumer.String())
	expect(t, slow.entered, otherConsumer.String()) // three places are free, and none of them the first one's
	close(slow.release)
	calls.Wait()
}

func TestARefusalNamesTheBoundOfTheCluster(t *testing.T) {
	b, slow := startShared(t)
	client := b.library(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls sync.WaitGroup
	refused := make(chan metav1.Status, 400)
	for range 400 { // more than may wait
		calls.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.widgetURL(consumer.String()), nil)
			if err != nil {
				return
			}
			response, err := client.Do(request)
			if err != nil {
				return
			}
			defer response.Body.Close()
			var said metav1.Status
			if response.StatusCode == http.StatusTooManyRequests && json.NewDecoder(response.Body).Decode(&said) == nil {
				refused <- said
			}
		})
	}
	select {
	case said := <-refused:
		expectBound(t, said, http.StatusTooManyRequests, budget.ReadsPerConsumer)
	case <-time.After(30 * time.Second):
		t.Error("nothing is refused")
	}
	cancel()
	close(slow.release)
	calls.Wait()
}

func TestWatchesOfAClusterAreBounded(t *testing.T) {
	b := start(t, func(o *apiserver.Options) { o.Limits[budget.WatchesPerConsumer] = 1 })
	client := b.library(t)
	watch := func(cluster string) *http.Request {
		address := "https://localhost:" + b.port() + base + cluster + apis + "/namespaces/default/widgets?watch=true"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		return request
	}
	for _, cluster := range []string{consumer.String(), otherConsumer.String()} {
		response, err := client.Do(watch(cluster))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("a watch in %s: %d", cluster, response.StatusCode)
		}
	}
	expectBound(t, ask(t, client, watch(consumer.String())), http.StatusTooManyRequests, budget.WatchesPerConsumer)
}

func TestBodiesAreBounded(t *testing.T) {
	b := start(t)
	client := b.library(t)
	const levels = 10_000
	widget := `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"one"},"spec":{"size":`
	for name, c := range map[string]struct {
		contentType, body string
		code              int32
		bound             *budget.Bound
	}{
		"a megabyte":    {"application/json", widget + `"` + strings.Repeat("x", 1<<20) + `"}}`, http.StatusRequestEntityTooLarge, budget.InstanceBytes},
		"many values":   {"application/json", widget + `[` + strings.Repeat("1,", 30_000) + `1]}}`, http.StatusRequestEntityTooLarge, budget.Values},
		"3 MiB of YAML": {"application/yaml", "spec:\n  size: " + strings.Repeat("x", 3<<20), http.StatusRequestEntityTooLarge, budget.RequestBytes},
		"nested JSON":   {"application/json", widget + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels+2), http.StatusUnprocessableEntity, budget.Depth},
		"nested lists":  {"application/json", widget + strings.Repeat(`[`, levels) + strings.Repeat("]", levels) + "}}", http.StatusUnprocessableEntity, budget.Depth},
		// Once it is decoded, the decoder's errors are the answer.
		"nested YAML": {"application/yaml", "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: one}\nspec:\n  size:\n    " +
			strings.Repeat("- ", budget.Depth.Default) + "x\n", http.StatusBadRequest, budget.Depth},
	} {
		t.Run(name, func(t *testing.T) {
			address := "https://localhost:" + b.port() + base + consumer.String() + apis + "/namespaces/default/widgets"
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", c.contentType)
			expectBound(t, ask(t, client, request), c.code, c.bound)
		})
	}
}
