package plane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

// watchAll reports, as text, what a watch of all ConfigMaps tells of one namespace, and the end of its first list.
func watchAll(t *testing.T, set *plane.Set, target v1alpha1.Target, namespace string) <-chan string {
	t.Helper()
	events := make(chan string, 100)
	go func() {
		_ = set.WatchAll(t.Context(), target, export, configMaps, func(kind watch.EventType, object *unstructured.Unstructured) {
			switch {
			case kind == watch.Bookmark:
				events <- "listed"
			case object.GetNamespace() == namespace:
				if _, found := object.Object["data"]; found {
					t.Errorf("content travelled: %v", object.Object)
				}
				events <- fmt.Sprint(kind, " ", object.GetName(), " of ", object.GetAnnotations()[v1alpha1.AnnotationCluster], " ", object.GetLabels())
			}
		})
	}()
	return events
}

// expectEvents waits for these, in this order.
func expectEvents(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	for _, next := range want {
		select {
		case got := <-events:
			if got != next {
				t.Fatalf("got %q, want %q", got, next)
			}
		case <-time.After(eventTimeout):
			t.Fatalf("no %q", next)
		}
	}
}

func TestWatchAllAnnouncesWhateverAnybodyWrote(t *testing.T) {
	set, proxy, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetHost) // the same server, by a way that isn't cut
	create := func(name string) *unstructured.Unstructured {
		object := configMap(ns, name, map[string]any{"secret": "content"})
		object.SetAnnotations(map[string]string{v1alpha1.AnnotationCluster: "consumer1", "large": strings.Repeat("x", 1000)})
		object.SetLabels(map[string]string{"for": name})
		created, err := p.Create(t.Context(), configMaps, object, write)
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	remove := func(object *unstructured.Unstructured) {
		if err := p.Delete(t.Context(), plane.Object{GVR: configMaps, Namespace: ns, Name: object.GetName()}, object.GetUID()); err != nil {
			t.Fatal(err)
		}
	}
	before := create("before")
	events := watchAll(t, set, v1alpha1.TargetConsumer, ns)
	expectEvents(t, events, "ADDED before of consumer1 map[for:before]", "listed")

	during := create("during")
	expectEvents(t, events, "ADDED during of consumer1 map[for:during]")
	during.SetLabels(nil)
	during, err := p.Update(t.Context(), configMaps, during, write)
	if err != nil {
		t.Fatal(err)
	}
	expectEvents(t, events, "MODIFIED during of consumer1 map[]")
	remove(during)
	expectEvents(t, events, "DELETED during of consumer1 map[]")

	// After a cut the server no longer knows the version: differences are told, and the next one is the last of them.
	cut(proxy)
	create("meanwhile")
	remove(before)
	proxy.Fail(nil)
	expectEvents(t, events, "ADDED meanwhile of consumer1 map[for:meanwhile]", "DELETED before of consumer1 map[]")
	create("last")
	expectEvents(t, events, "ADDED last of consumer1 map[for:last]")

	for _, seen := range proxy.Seen() {
		if strings.HasPrefix(seen, "GET") && strings.HasSuffix(seen, "/configmaps") && !strings.Contains(seen, "/clusters/*/") {
			t.Errorf("watched in one cluster only: %s", seen)
		}
	}
}

func TestWatchAllWorksOnEveryPlane(t *testing.T) {
	set, proxy, ns := workspaces(t)
	if _, err := planeFor(t, set, v1alpha1.TargetHost).Create(t.Context(), configMaps, configMap(ns, "one", nil), write); err != nil {
		t.Fatal(err)
	}
	for _, target := range []v1alpha1.Target{v1alpha1.TargetConsumer, v1alpha1.TargetProvider, v1alpha1.TargetHost} {
		t.Run(string(target), func(t *testing.T) {
			expectEvents(t, watchAll(t, set, target, ns), "ADDED one of  map[]", "listed")
		})
	}
	if seen := strings.Join(proxy.Seen(), "\n"); !strings.Contains(seen, "/clusters/provider1/api/v1/configmaps") {
		t.Errorf("the provider's workspace was not watched: %s", seen)
	}
}

func TestWatchAllWithoutAHostEndsAtOnce(t *testing.T) {
	set, err := plane.New(plane.Config{Kcp: server.Admin, Endpoints: endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	err = set.WatchAll(context.Background(), v1alpha1.TargetHost, export, configMaps, nil)
	if !errors.Is(err, plane.ErrNoHost) {
		t.Errorf("ended with %v", err)
	}
}
