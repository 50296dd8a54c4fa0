package plane_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

// event is what a watch announced, reduced to what tests ask about.
type event struct {
	kind     watch.EventType
	name     string
	instance string
}

const eventTimeout = 10 * time.Second

func nextEvent(t *testing.T, events <-chan event) event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(eventTimeout):
		t.Fatal("no event")
		return event{}
	}
}

func noEvent(t *testing.T, events <-chan event) {
	t.Helper()
	select {
	case e := <-events:
		t.Errorf("unexpected event %+v", e)
	case <-time.After(100 * time.Millisecond):
	}
}

// child is a ConfigMap that carries marks.
func child(namespace, name, blueprint, instance string) *unstructured.Unstructured {
	object := configMap(namespace, name, map[string]any{"secret": "content"})
	object.SetLabels(map[string]string{v1alpha1.LabelBlueprint: blueprint, v1alpha1.LabelInstanceUID: instance})
	return object
}

func TestWatchAnnouncesChildrenOfTheBlueprintAndResumesAfterCuts(t *testing.T) {
	set, proxy, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetHost) // the same server, by a way that isn't cut
	create := func(name, blueprint string) *unstructured.Unstructured {
		created, err := p.Create(t.Context(), configMaps, child(ns, name, blueprint, "uid-"+name), write)
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	create("before", ns)

	events := make(chan event, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- set.Watch(ctx, v1alpha1.TargetConsumer, export, ns, configMaps, func(kind watch.EventType, object *unstructured.Unstructured) {
			if _, found := object.Object["data"]; found {
				t.Errorf("content travelled: %v", object.Object)
			}
			events <- event{kind, object.GetName(), object.GetLabels()[v1alpha1.LabelInstanceUID]}
		})
	}()
	expect := func(kind watch.EventType, name string) {
		t.Helper()
		if got, want := nextEvent(t, events), (event{kind, name, "uid-" + name}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	expect(watch.Added, "before")
	create("others", "another")
	during := create("during", ns)
	expect(watch.Added, "during")
	during.SetAnnotations(map[string]string{"changed": "once"})
	if _, err := p.Update(t.Context(), configMaps, during, write); err != nil {
		t.Fatal(err)
	}
	expect(watch.Modified, "during")

	// A cut after which the server no longer knows the version: what happened meanwhile is announced, nothing else.
	cut(proxy)
	create("meanwhile", ns)
	at := plane.Object{GVR: configMaps, Namespace: ns, Name: "before"}
	live, err := p.Get(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), at, live.GetUID()); err != nil {
		t.Fatal(err)
	}
	proxy.Fail(nil)
	expect(watch.Added, "meanwhile")
	expect(watch.Deleted, "before")
	noEvent(t, events)

	for _, seen := range proxy.Seen() {
		if strings.HasSuffix(seen, "/configmaps") && strings.HasPrefix(seen, "GET") && !strings.Contains(seen, "/clusters/*/") {
			t.Errorf("watched in one cluster only: %s", seen)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(eventTimeout):
		t.Error("the watch outlives its context")
	}
}

// cut ends all watches, and keeps them from going on until the proxy's Fail is reset.
func cut(proxy *planetest.Workspaces) {
	proxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/services/") && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`))
			return true
		}
		return false
	})
	proxy.CloseClientConnections()
}

func TestWatchStartsOnceTheKindIsServed(t *testing.T) {
	set, _, ns := workspaces(t)
	kind := strings.ReplaceAll(ns, "-", "")
	gvr := configMaps
	gvr.Group, gvr.Version, gvr.Resource = kind+".example.org", "v1", "widgets"
	events := make(chan event, 10)
	go func() {
		_ = set.Watch(t.Context(), v1alpha1.TargetProvider, export, ns, gvr, func(kind watch.EventType, object *unstructured.Unstructured) {
			events <- event{kind, object.GetName(), object.GetLabels()[v1alpha1.LabelInstanceUID]}
		})
	}()
	createWidgetKind(t, gvr.Group)
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": "Widget", "spec": map[string]any{"size": int64(1)},
	}}
	widget.SetName("w")
	widget.SetNamespace(ns)
	widget.SetLabels(child(ns, "w", ns, "uid-w").GetLabels())
	p := planeFor(t, set, v1alpha1.TargetProvider)
	eventually(t, func() bool {
		_, err := p.Create(t.Context(), gvr, widget, write)
		if err != nil && !plane.IsNotServed(err) && !apierrors.IsTooManyRequests(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	if got, want := nextEvent(t, events), (event{watch.Added, "w", "uid-w"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// eventually waits for what a server does in its own time.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(eventTimeout); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("did not happen in time")
		}
	}
}

// TestWatchOfAnExportThatNobodyHasBoundIsQuiet counts what is reported as an error.
func TestWatchOfAnExportThatNobodyHasBoundIsQuiet(t *testing.T) {
	var reported atomic.Int32
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) { reported.Add(1) }}
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	set, err := plane.New(plane.Config{Kcp: server.Admin, Endpoints: endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := set.Watch(ctx, v1alpha1.TargetConsumer, export, "b", configMaps, func(watch.EventType, *unstructured.Unstructured) {}); err != nil {
		t.Error(err)
	}
	if reported.Load() > 0 {
		t.Errorf("%d errors", reported.Load())
	}
}
