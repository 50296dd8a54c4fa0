package kind

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// These tests pin what composing relies on and genericregistry.Store doesn't promise: it hands copies
// to the validator, but stores the very object that it was given (on create) or that UpdatedObject
// returned (on update), after preparing it in place. So whoever holds that object can change what is
// stored while the validator runs: after validation and admission, in dry run too, with the old object known.

// compose is what composing does to the object.
func compose(object *unstructured.Unstructured) {
	object.SetFinalizers(append(object.GetFinalizers(), v1alpha1.Finalizer))
	with("composed", "status", "phase")(object)
}

// captured remembers what is about to be stored.
type captured struct {
	rest.UpdatedObjectInfo
	object *unstructured.Unstructured
}

func (c *captured) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	object, err := c.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err == nil {
		c.object = object.(*unstructured.Unstructured)
	}
	return object, err
}

func composed(t *testing.T, object *unstructured.Unstructured) bool {
	t.Helper()
	return slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) && valueAt(t, object, "status", "phase") == "composed"
}

func TestWhatComposingPutsIntoANewObjectIsStored(t *testing.T) {
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		store := newStore(t, newKind(t, definition(t, newGroup())))
		ctx := in(t.Context(), one, namespace)
		object := decoded(store.Kind, "a", with("users", "status", "phase"))
		validate := func(_ context.Context, copied runtime.Object) error {
			if valueAt(t, object, "spec", "color") != "red" || valueAt(t, object, "status") != nil || object.GetUID() == "" {
				t.Errorf("the object isn't prepared yet: %v", object.Object)
			}
			compose(copied.(*unstructured.Unstructured)) // a copy: of no effect
			compose(object)
			return nil
		}
		answer, err := store.Main.Create(ctx, object, validate, &metav1.CreateOptions{DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		if !composed(t, answer.(*unstructured.Unstructured)) || len(object.GetFinalizers()) != 1 {
			t.Errorf("dry run %v: the answer is %v", dryRun, answer)
		}
		stored, err := store.Main.Get(ctx, "a", &metav1.GetOptions{})
		if dryRun != nil {
			if !apierrors.IsNotFound(err) {
				t.Errorf("a dry run stored %v, %v", stored, err)
			}
		} else if err != nil || !composed(t, stored.(*unstructured.Unstructured)) {
			t.Errorf("stored is %v, %v", stored, err)
		}
	}
}

func TestWhatComposingPutsIntoAChangedObjectIsStored(t *testing.T) {
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		store := newStore(t, newKind(t, definition(t, newGroup())))
		ctx := in(t.Context(), one, namespace)
		object := create(t, ctx, store, decoded(store.Kind, "a")).DeepCopy()
		with(int64(9), "spec", "size")(object)

		info := &captured{UpdatedObjectInfo: rest.DefaultUpdatedObjectInfo(object)}
		validate := func(_ context.Context, _, old runtime.Object) error {
			if info.object.GetGeneration() != 2 || valueAt(t, old.(*unstructured.Unstructured), "spec", "size") != int64(3) {
				t.Errorf("the object isn't prepared yet, or the old one isn't old: %v, %v", info.object, old)
			}
			compose(info.object)
			return nil
		}
		answer, _, err := store.Main.Update(ctx, "a", info, nil, validate, false, &metav1.UpdateOptions{DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		if !composed(t, answer.(*unstructured.Unstructured)) {
			t.Errorf("dry run %v: the answer is %v", dryRun, answer)
		}
		if stored := get(t, ctx, store, "a"); composed(t, stored) == (dryRun != nil) {
			t.Errorf("dry run %v: stored is %v", dryRun, stored)
		}
	}
}

func TestWhatComposingPutsIntoAnUnchangedObjectIsStored(t *testing.T) {
	store, _, client := served(t)
	ctx := in(t.Context(), one, namespace)
	created, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	info := &captured{UpdatedObjectInfo: rest.DefaultUpdatedObjectInfo(created)}
	validate := func(context.Context, runtime.Object, runtime.Object) error { compose(info.object); return nil }
	if _, _, err := store.Main.Update(ctx, "a", info, nil, validate, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if stored := get(t, ctx, store, "a"); !composed(t, stored) {
		t.Errorf("stored is %v", stored)
	}
}

func TestWhatComposingPutsIntoAnAppliedNewObjectIsStored(t *testing.T) {
	store := newStore(t, newKind(t, definition(t, newGroup())))
	ctx := in(t.Context(), one, namespace)
	info := &captured{UpdatedObjectInfo: rest.DefaultUpdatedObjectInfo(decoded(store.Kind, "a"))}
	validate := func(context.Context, runtime.Object) error { compose(info.object); return nil }
	_, created, err := store.Main.Update(ctx, "a", info, validate, nil, true, &metav1.UpdateOptions{})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	if stored := get(t, ctx, store, "a"); !composed(t, stored) {
		t.Errorf("stored is %v", stored)
	}
}

func TestWhatComposingRefusesIsAnsweredAsItIsAndNotStored(t *testing.T) {
	store := newStore(t, newKind(t, definition(t, newGroup())))
	ctx := in(t.Context(), one, namespace)
	refusal := apierrors.NewConflict(store.Kind.GVR().GroupResource(), "child", errors.New("taken"))
	object := decoded(store.Kind, "a")
	validate := func(context.Context, runtime.Object) error { compose(object); return refusal }
	if _, err := store.Main.Create(ctx, object, validate, &metav1.CreateOptions{}); !errors.Is(err, error(refusal)) {
		t.Errorf("answered %v", err)
	}
	if _, err := store.Main.Get(ctx, "a", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was stored: %v", err)
	}
}

// An update must not run against what the cache still holds: it would compose twice.
func TestEachUpdateComposesOnce(t *testing.T) {
	const updates = 100
	store := newStore(t, newKind(t, definition(t, newGroup())))
	ctx := in(t.Context(), one, namespace)
	object := create(t, ctx, store, decoded(store.Kind, "a"))
	runs := 0
	for i := range updates {
		object = object.DeepCopy()
		with(int64(i%50), "spec", "size")(object)
		validate := func(context.Context, runtime.Object, runtime.Object) error { runs++; return nil }
		updated, _, err := store.Main.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(object), nil, validate, false, &metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		object = updated.(*unstructured.Unstructured)
	}
	if runs != updates {
		t.Errorf("%d updates composed %d times", updates, runs)
	}
}

func TestCreateOutsideOfOneClusterComposesNothing(t *testing.T) {
	store := newStore(t, newKind(t, definition(t, newGroup())))
	for _, ctx := range []context.Context{
		in(t.Context(), "*", namespace), in(t.Context(), "..", namespace), in(t.Context(), "", namespace),
	} {
		validate := func(context.Context, runtime.Object) error { t.Error("composed"); return nil }
		if _, err := store.Main.Create(ctx, decoded(store.Kind, "a"), validate, &metav1.CreateOptions{}); err == nil {
			t.Error("created")
		}
	}
}
