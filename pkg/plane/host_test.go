package plane_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

// TestHostBehindAGatewayKeepsItsPath: gateways in front of many clusters have /clusters/... in the addresses of
// each, and it says which. Only in kcp's addresses is it krop's to choose.
func TestHostBehindAGatewayKeepsItsPath(t *testing.T) {
	const path = "/k8s/clusters/c-abc12"
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: server.Admin.TLSClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	backend, err := url.Parse(server.Admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	var elsewhere atomic.Int32
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(backend)
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, path)
	}}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, path+"/") {
			elsewhere.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(gateway.Close)
	set, err := plane.New(plane.Config{
		Kcp: server.Admin, Endpoints: endpoint{},
		Host: &rest.Config{Host: gateway.URL + path, BearerToken: server.Admin.BearerToken, QPS: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = planeFor(t, set, v1alpha1.TargetHost).Get(t.Context(), plane.Object{GVR: configMaps, Namespace: namespace(t), Name: "missing"})
	if !apierrors.IsNotFound(err) || plane.IsNotServed(err) {
		t.Errorf("got %v, want NotFound of the object", err)
	}
	if elsewhere.Load() > 0 {
		t.Error("krop has cut the path off")
	}
}

// TestWatchOfTheHostLeavesOutOtherProviders: blueprints of two workspaces may have one name.
func TestWatchOfTheHostLeavesOutOtherProviders(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetHost)
	for name, provider := range map[string]string{"theirs": "provider2", "own": export.Cluster.String()} {
		object := child(ns, name, ns, "uid-"+name)
		labels := object.GetLabels()
		labels[v1alpha1.LabelProviderCluster] = provider
		object.SetLabels(labels)
		if _, err := p.Create(t.Context(), configMaps, object, write); err != nil {
			t.Fatal(err)
		}
	}
	events := make(chan event, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- set.Watch(ctx, v1alpha1.TargetHost, export, ns, configMaps, func(kind watch.EventType, object *unstructured.Unstructured) {
			events <- event{kind, object.GetName(), object.GetLabels()[v1alpha1.LabelInstanceUID]}
		})
	}()
	if got, want := nextEvent(t, events), (event{watch.Added, "own", "uid-own"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	noEvent(t, events)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestKindThatWasDefinedAMomentAgoResolves: once discovery has a kind, everybody takes it for served, though OpenAPI lacks it.
func TestKindThatWasDefinedAMomentAgoResolves(t *testing.T) {
	set, _, _ := workspaces(t)
	kinds, err := discovery.NewDiscoveryClientForConfig(server.Admin)
	if err != nil {
		t.Fatal(err)
	}
	createWidgetKind(t, "moment.example.org")
	eventually(t, func() bool {
		_, err := kinds.ServerResourcesForGroupVersion("moment.example.org/v1")
		return err == nil
	})
	gvk := schema.GroupVersionKind{Group: "moment.example.org", Version: "v1", Kind: "Widget"}
	for _, target := range []v1alpha1.Target{v1alpha1.TargetHost, v1alpha1.TargetProvider} {
		if got, err := resolve(t, set, target, gvk); err != nil || got.GVR.Resource != "widgets" {
			t.Errorf("%s: %+v, %v", target, got, err)
		}
	}
}
