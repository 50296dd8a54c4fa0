package kind

import (
	"context"
	"fmt"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

func TestObjectsAreServedInTheVersionOfTheDay(t *testing.T) {
	group := newGroup()
	store := newStore(t, newKind(t, definition(t, group)))
	ctx := in(t.Context(), one, namespace)
	create(t, ctx, store, decoded(store.Kind, "a", with(int64(7), "spec", "size")))
	store.Destroy()

	renamed := newStore(t, newKind(t, definition(t, group, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Name = "v2"
	})))
	for how, version := range reads {
		list := listAll(t, ctx, renamed, version)
		if len(list.Items) != 1 || list.Items[0].GroupVersionKind() != renamed.Kind.GVK() || valueAt(t, &list.Items[0], "spec", "size") != int64(7) {
			t.Errorf("%s: %v", how, list.Items)
		}
	}
	object := get(t, ctx, renamed, "a")
	with(int64(8), "spec", "size")(object)
	if updated := update(t, ctx, renamed, object); updated.GetAPIVersion() != group+"/v2" {
		t.Errorf("updated is %v", updated)
	}
}

func TestStoredObjectsFollowTheSchema(t *testing.T) {
	group := newGroup()
	store := newStore(t, newKind(t, definition(t, group)))
	ctx := in(t.Context(), one, namespace)
	create(t, ctx, store, decoded(store.Kind, "a"))

	changed := newStore(t, newKind(t, definition(t, group, func(crd *apiextensionsv1.CustomResourceDefinition) {
		spec := root(crd).Properties["spec"]
		spec.XValidations = nil
		delete(spec.Properties, "size")
		spec.Properties["shape"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"round"`)}}
		root(crd).Properties["spec"] = spec
	})))
	object := get(t, ctx, changed, "a")
	if valueAt(t, object, "spec", "size") != nil || valueAt(t, object, "spec", "shape") != "round" {
		t.Errorf("spec %v", object.Object["spec"])
	}
}

// While a schema is swapped, requests still use the old store.
func TestTwoStoresOfOneKindWriteSideBySide(t *testing.T) {
	const writers, writes = 4, 20
	k := newKind(t, definition(t, newGroup()))
	stores := []*Store{newStore(t, k), newStore(t, k)}
	ctx := in(t.Context(), one, namespace)
	create(t, ctx, stores[0], decoded(k, "shared", with(int64(0), "spec", "size")))

	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			store := stores[i%len(stores)]
			for n := range writes {
				if err := increment(ctx, store); err != nil {
					t.Errorf("writer %d, write %d: %v", i, n, err)
				}
				if _, err := store.Main.Create(ctx, decoded(k, fmt.Sprintf("w%d-%d", i, n)), nil, &metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, store := range stores {
		if list := listAll(t, ctx, store, ""); len(list.Items) != writers*writes+1 {
			t.Errorf("%d objects", len(list.Items))
		}
		if got := valueAt(t, get(t, ctx, store, "shared"), "spec", "size"); got != int64(writers*writes) {
			t.Errorf("%d of %d increments were kept", got, writers*writes)
		}
	}
}

// increment is what a JSON patch without a resourceVersion is to the store: it is tried again on conflict.
func increment(ctx context.Context, store *Store) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		object := old.DeepCopyObject().(*unstructured.Unstructured)
		size, _, err := unstructured.NestedInt64(object.Object, "spec", "size")
		with(size+1, "spec", "size")(object)
		return object, err
	})
	_, _, err := store.Main.Update(ctx, "shared", info, nil, nil, false, &metav1.UpdateOptions{})
	return err
}
