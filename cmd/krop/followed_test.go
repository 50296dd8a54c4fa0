package main

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/gc"
	"go.opendefense.cloud/krop/pkg/publish"
)

// sources hands the watches over to a test.
type sources chan func(watch.EventType, *unstructured.Unstructured)

func (s sources) Watch(ctx context.Context, _ v1alpha1.Target, _ v1alpha1.ExportKey, _ string, _ schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error {
	s <- handle
	<-ctx.Done()
	s <- nil
	return nil
}

// WatchAll is not what a published export is watched by.
func (s sources) WatchAll(context.Context, v1alpha1.Target, v1alpha1.ExportKey, schema.GroupVersionResource, func(watch.EventType, *unstructured.Unstructured)) error {
	panic("all objects are watched")
}

func TestExportThatIsNoLongerServedIsForgotten(t *testing.T) {
	nowhere := publish.Config{REST: &rest.Config{Host: "https://127.0.0.1:1"}, ExternalURL: "https://127.0.0.1:1"}
	bindings, err := publish.NewBindings(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	defer bindings.Close()
	endpoints, err := publish.NewEndpoints(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	watches := make(sources)
	changes := make(chan string, 10)
	parts := followed{
		loop:      gc.New(gc.Config{}),
		kcp:       &kcp{bindings: bindings, endpoints: endpoints, routes: &publish.Routes{}},
		published: newPublished(watches),
	}
	parts.published.subscribe(func(_ v1alpha1.ExportKey, blueprint string) { changes <- blueprint })
	export := v1alpha1.ExportKey{Cluster: "provider1", Name: "widgets.example.org"}
	if err := parts.Serve(export, &engine.Program{Blueprint: "widgets", Export: export}, nil); err != nil {
		t.Fatal(err)
	}
	gone := &unstructured.Unstructured{Object: map[string]any{}}
	gone.SetName(export.Name)
	for range publish.Watched() {
		(<-watches)(watch.Deleted, gone)
		if changed := <-changes; changed != "widgets" {
			t.Errorf("the change is said to be of %q", changed)
		}
	}
	parts.kcp.routes.Observe(export)
	parts.Stop(export)
	for range publish.Watched() {
		<-watches // the watch has ended
	}
	if parts.kcp.routes.Seen(export) {
		t.Error("the route is still taken for proven")
	}
}
