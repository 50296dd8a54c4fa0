package plane_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

func TestAnObjectOutlivesTheVersionThatItWasWrittenIn(t *testing.T) {
	const group = "versions.example.org"
	set, proxy, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetProvider)
	crd := createWidgetKind(t, group)
	old := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	at := plane.Object{GVR: old, Namespace: ns, Name: "w"}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": ns, "name": "w"},
	}}
	eventually(t, func() bool { _, err := p.Create(t.Context(), old, widget, write); return err == nil })

	crd, err := crds(t).Get(t.Context(), crd.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	next := *crd.Spec.Versions[0].DeepCopy()
	next.Name = "v2"
	crd.Spec.Versions[0].Served, crd.Spec.Versions[0].Storage = false, false
	crd.Spec.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{next}, crd.Spec.Versions...)
	if _, err := crds(t).Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { _, err := p.Get(t.Context(), at); return plane.IsNotServed(err) })
	eventually(t, func() bool { // discovery may go on listing what is no longer served, and then proves nothing
		live, found, err := plane.Find(t.Context(), p, v1alpha1.TargetProvider, at)
		return err == nil && live.GetName() == "w" && found.GVR.Version == "v2"
	})

	// Discovery that fails proves nothing.
	proxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/apis/"+group) || strings.HasSuffix(r.URL.Path, "/apis") {
			http.NotFound(w, r)
			return true
		}
		return false
	})
	if _, _, err := plane.Find(t.Context(), p, v1alpha1.TargetProvider, at); err == nil || plane.IsGone(err) {
		t.Errorf("without discovery: %v", err)
	}
	proxy.Fail(nil)

	// A kind that is served in no version has no objects, except that a consumer may only not show it.
	if err := crds(t).Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		_, _, err := plane.Find(t.Context(), p, v1alpha1.TargetProvider, at)
		return plane.IsGone(err)
	})
	consumer := planeFor(t, set, v1alpha1.TargetConsumer)
	eventually(t, func() bool { // the objects go before the kind does
		_, _, err := plane.Find(t.Context(), consumer, v1alpha1.TargetConsumer, at)
		return plane.IsNotServed(err)
	})
	if versions, err := p.Versions(t.Context(), configMaps.GroupResource()); err != nil || !slices.Equal(versions, []string{"v1"}) {
		t.Errorf("versions of ConfigMaps: %v, %v", versions, err)
	}
}
