package plane_test

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

// createWidgetKind makes a CRD of a group that belongs to the test.
func createWidgetKind(t *testing.T, group string, rules ...apiextensionsv1.ValidationRule) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: widgetSchema("size", rules...)},
			}},
		},
	}
	created, err := crds(t).Create(t.Context(), crd, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// widgetSchema has a number of the given name, and two objects, in its spec.
func widgetSchema(field string, rules ...apiextensionsv1.ValidationRule) *apiextensionsv1.JSONSchemaProps {
	number := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	object := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"value": number}}
	return &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {
				Type:         "object",
				Properties:   map[string]apiextensionsv1.JSONSchemaProps{field: number, "a": object, "b": object},
				XValidations: rules,
			},
		},
	}
}

func resolve(t *testing.T, set *plane.Set, target v1alpha1.Target, gvk schema.GroupVersionKind) (*plane.ResourceType, error) {
	t.Helper()
	schemas, err := set.Schemas(t.Context(), target, export)
	if err != nil {
		t.Fatal(err)
	}
	return schemas.Resolve(t.Context(), gvk)
}

func TestCoreKindsResolveWithReferencesAndExtensions(t *testing.T) {
	set, proxy, _ := workspaces(t)
	for _, target := range []v1alpha1.Target{v1alpha1.TargetConsumer, v1alpha1.TargetProvider, v1alpha1.TargetHost} {
		got, err := resolve(t, set, target, schema.GroupVersionKind{Version: "v1", Kind: "Service"})
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if got.GVR.Resource != "services" || !got.Namespaced {
			t.Errorf("%s: %v, namespaced %v", target, got.GVR, got.Namespaced)
		}
		spec := got.Schema.Properties["spec"]
		ports := spec.Properties["ports"]
		if keys := ports.Extensions["x-kubernetes-list-map-keys"]; keys == nil {
			t.Errorf("%s: ports have no list map keys: %v", target, ports.Extensions)
		}
		if item := ports.Items.Schema; item.Properties["port"].Type[0] != "integer" {
			t.Errorf("%s: the reference to a port is not resolved: %+v", target, item)
		}
	}
	for _, seen := range proxy.Seen() {
		if !strings.Contains(seen, "/clusters/provider1/") {
			t.Errorf("read elsewhere than in the provider's workspace: %s", seen)
		}
	}
	cluster, err := resolve(t, set, v1alpha1.TargetHost, schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"})
	if err != nil || cluster.Namespaced {
		t.Errorf("ClusterRole: %+v, %v", cluster, err)
	}
}

func TestUnchangedDocumentsAreNotReadAgain(t *testing.T) {
	set, proxy, _ := workspaces(t)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if _, err := resolve(t, set, v1alpha1.TargetProvider, gvk); err != nil {
		t.Fatal(err)
	}
	proxy.Seen()
	if _, err := resolve(t, set, v1alpha1.TargetProvider, gvk); err != nil {
		t.Fatal(err)
	}
	for _, seen := range proxy.Seen() {
		if strings.HasSuffix(seen, "/openapi/v3/api/v1") {
			t.Error("the document was read again")
		}
	}
}

func TestChangedKindIsResolvedAnew(t *testing.T) {
	set, _, ns := workspaces(t)
	group := strings.ReplaceAll(ns, "-", "") + ".example.org"
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	_, err := resolve(t, set, v1alpha1.TargetProvider, gvk)
	var unknown *plane.UnknownKindError
	if !errors.As(err, &unknown) || unknown.GVK != gvk || unknown.Target != v1alpha1.TargetProvider {
		t.Fatalf("before the kind exists: %v, want UnknownKindError", err)
	}
	has := func(field string) func() bool {
		return func() bool {
			got, err := resolve(t, set, v1alpha1.TargetProvider, gvk)
			if err != nil && !errors.As(err, &unknown) {
				t.Fatal(err)
			}
			if err != nil {
				return false
			}
			spec := got.Schema.Properties["spec"]
			_, found := spec.Properties[field]
			return found
		}
	}
	crd := createWidgetKind(t, group)
	eventually(t, has("size"))
	crd, err = crds(t).Get(t.Context(), crd.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = widgetSchema("colour")
	if _, err := crds(t).Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, has("colour"))
}

func TestUnknownKindOfAServedGroupIsTold(t *testing.T) {
	set, _, _ := workspaces(t)
	var unknown *plane.UnknownKindError
	if _, err := resolve(t, set, v1alpha1.TargetConsumer, schema.GroupVersionKind{Version: "v1", Kind: "Nothing"}); !errors.As(err, &unknown) {
		t.Errorf("got %v, want UnknownKindError", err)
	}
}

func crds(t *testing.T) apiextensionsclient.CustomResourceDefinitionInterface {
	t.Helper()
	client, err := clientset.NewForConfig(server.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return client.ApiextensionsV1().CustomResourceDefinitions()
}

func TestKindIsKnownByItsHashAndItsDocument(t *testing.T) {
	set, _, ns := workspaces(t)
	group := strings.ReplaceAll(ns, "-", "") + ".example.org"
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	look := func() (hash, document string) {
		schemas, err := set.Schemas(t.Context(), v1alpha1.TargetProvider, export)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := schemas.Resolve(t.Context(), gvk); err == nil {
			hash = got.Hash
		}
		return hash, schemas.Document(gvk.GroupVersion())
	}
	if hash, document := look(); hash != "" || document != "" {
		t.Errorf("before there is such a kind: hash %q, document %q", hash, document)
	}
	crd := createWidgetKind(t, group)
	eventually(t, func() bool { hash, document := look(); return hash != "" && document != "" })
	firstHash, firstDocument := look()
	if hash, document := look(); hash != firstHash || document != firstDocument {
		t.Error("looks differ although nothing has changed")
	}
	other := crd.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "others." + group}
	other.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "others", Singular: "other", Kind: "Other", ListKind: "OtherList"}
	if _, err := crds(t).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { _, document := look(); return document != firstDocument })
	if hash, _ := look(); hash != firstHash {
		t.Error("the kind has another hash although another kind of its group has come")
	}
	crd, err := crds(t).Get(t.Context(), crd.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = widgetSchema("colour")
	if _, err := crds(t).Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { hash, _ := look(); return hash != "" && hash != firstHash })
}
