package kind

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

const (
	// provider is the export cluster of all tests; they are kept apart by the group of their kind.
	provider = logicalcluster.Name("provider")
	one      = logicalcluster.Name("one")
	two      = logicalcluster.Name("two")

	namespace = "default"
	// patience is how long tests wait for what should take milliseconds.
	patience = 30 * time.Second
)

// backend is one real etcd for all tests of the package.
var backend *etcd.Backend

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "krop-kind-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	server, err := etcd.Start(context.Background(), etcd.EmbeddedConfig{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	if backend, err = etcd.Connect(context.Background(), etcd.BackendConfig{Client: server.Client()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer backend.Close()
	return m.Run()
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [color]
            x-kubernetes-validations:
            - {rule: "self.size < 100", message: "size must stay below 100"}
            - {rule: "self.color == oldSelf.color", message: "color is immutable"}
            properties:
              color: {type: string}
              size: {type: integer, default: 3}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, port: {type: integer}}
          status:
            type: object
            properties:
              phase: {type: string}
              ready: {type: boolean, default: false}
`

var groups atomic.Int64

// newGroup is an API group that no other test uses.
func newGroup() string { return fmt.Sprintf("g%d.example.com", groups.Add(1)) }

// definition is the widgets' definition in a group of its own, changed by the edits.
func definition(t *testing.T, group string, edits ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(widgets), crd); err != nil {
		t.Fatal(err)
	}
	crd.Name, crd.Spec.Group = "widgets."+group, group
	for _, edit := range edits {
		edit(crd)
	}
	return crd
}

func newKind(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *Kind {
	t.Helper()
	k, err := New(crd)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newStore(t *testing.T, k *Kind, allowed ...string) *Store {
	t.Helper()
	store, err := NewStore(k, StoreOptions{Backend: backend, ExportCluster: provider, Allowed: allowed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := store.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return store
}

// in is the context of a request in a cluster and a namespace.
func in(ctx context.Context, cluster logicalcluster.Name, namespace string) context.Context {
	return request.WithNamespace(etcd.WithCluster(ctx, cluster), namespace)
}

func widget(k *Kind, name string, fields ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "red"}}}
	object.SetGroupVersionKind(k.GVK())
	object.SetNamespace(namespace)
	object.SetName(name)
	for _, field := range fields {
		field(object)
	}
	return object
}

// decoded is a widget as the store gets it from a handler, whose decoder fills in defaults.
func decoded(k *Kind, name string, fields ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	object := widget(k, name, fields...)
	k.schema.Default(object)
	return object
}

func with(value any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func create(t *testing.T, ctx context.Context, store *Store, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := store.Main.Create(ctx, object, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(*unstructured.Unstructured)
}

func get(t *testing.T, ctx context.Context, store *Store, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := store.Main.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

func valueAt(t *testing.T, object *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func clusterNumber(i int) logicalcluster.Name {
	return logicalcluster.Name(fmt.Sprintf("cluster-%d", i))
}

func listOptions(resourceVersion string) *metainternalversion.ListOptions {
	return &metainternalversion.ListOptions{ResourceVersion: resourceVersion}
}

func listAll(t *testing.T, ctx context.Context, store *Store, resourceVersion string) *unstructured.UnstructuredList {
	t.Helper()
	list, err := store.Main.List(ctx, listOptions(resourceVersion))
	if err != nil {
		t.Fatal(err)
	}
	return list.(*unstructured.UnstructuredList)
}

func deleteNow(ctx context.Context, store *Store, name string) error {
	_, _, err := store.Main.Delete(ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return err
}

func revision(t *testing.T, resourceVersion string) int64 {
	t.Helper()
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
