package gc

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// innerExport is another one, whose kind is served from the storage of a test's own.
var innerExport = v1alpha1.ExportKey{Cluster: "elsewhere", Name: "inners.example.org"}

func innerProgram() *engine.Program {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group, crd.Spec.Names.Plural = "example.org", "inners"
	return &engine.Program{Blueprint: "inners", Export: innerExport, SpecHash: "inner", CRD: crd}
}

// innerRow speaks of an instance of the inner kind in the consumer's workspace.
func innerRow(name, uid string, policy v1alpha1.DeletionPolicy) v1alpha1.ComposedResource {
	return v1alpha1.ComposedResource{
		ID: "inner", Target: v1alpha1.TargetConsumer, APIVersion: "example.org/v1", Kind: "Inner", Resource: "inners",
		Namespace: "default", Name: name, UID: types.UID(uid), DeletionPolicy: policy,
	}
}

// ofOuter is an inner instance with the marks of an outer one.
func ofOuter(name, uid, outer string) *unstructured.Unstructured {
	object := instance("c", name, uid)
	object.SetLabels(map[string]string{v1alpha1.LabelInstanceUID: outer, v1alpha1.LabelConsumerCluster: "c"})
	return object
}

// innerMemory stores what its keys say is of the inner export. Nothing of it is reclaimed for want of a binding: what
// goes, goes because of the outer instance.
type innerMemory struct{ *memory }

func (m innerMemory) Delete(context.Context, v1alpha1.InstanceKey) error { return nil }

func (m innerMemory) of(key v1alpha1.InstanceKey) v1alpha1.InstanceKey {
	key.Export = testExport // which is what memory knows
	return key
}

func (m innerMemory) Get(ctx context.Context, key v1alpha1.InstanceKey) (*unstructured.Unstructured, error) {
	return m.memory.Get(ctx, m.of(key))
}

func (m innerMemory) DeleteExactly(ctx context.Context, key v1alpha1.InstanceKey, uid types.UID) error {
	return m.memory.DeleteExactly(ctx, m.of(key), uid)
}

func (m innerMemory) has(name string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.objects[testKey("c", name)] != nil
}

func (m innerMemory) isDeleting(name string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	object := m.objects[testKey("c", name)]
	return object != nil && object.GetDeletionTimestamp() != nil
}

// TestNestedInstancesOfAnUnboundOneGoFirst has one inner instance that finishes only when the test says so, one of
// another owner and one that is to be orphaned.
func TestNestedInstancesOfAnUnboundOneGoFirst(t *testing.T) {
	b := newBed()
	inner := innerMemory{newMemory()}
	var torn []string
	b.composer.teardown = func(_ context.Context, request compose.Request, _ compose.Intent) (bool, *compose.Result, error) {
		for _, row := range inventory(request.Instance) {
			torn = append(torn, row.Name)
		}
		return request.Program.Export == testExport, &compose.Result{Instance: request.Instance}, nil
	}
	inner.put(ofOuter("mine", "10", "1"))
	inner.put(ofOuter("stolen", "11", "another"))
	inner.put(ofOuter("left", "12", "1"))
	inner.put(ofOuter("anew", "14", "1"))
	b.stored.put(instance("c", "a", "1",
		innerRow("mine", "10", v1alpha1.DeletionDelete), innerRow("stolen", "11", v1alpha1.DeletionDelete),
		innerRow("left", "12", v1alpha1.DeletionOrphan), innerRow("anew", "13", v1alpha1.DeletionDelete),
		row(v1alpha1.TargetProvider, "there")))
	b.bindings.unknown = false // and the consumer has none
	run(t, b.Loop)
	b.Serve(innerExport, innerProgram(), inner)
	b.Serve(testExport, testProgram("v1"), b.stored)

	eventually(t, "the nested instance is being deleted", func() bool { return inner.isDeleting("mine") })
	b.quiet(t)
	if b.gone(testKey("c", "a")) {
		t.Fatal("the outer instance has gone before the nested one")
	}
	inner.remove(testKey("c", "mine"))
	eventually(t, "the outer instance goes, by event", func() bool { return b.gone(testKey("c", "a")) })
	for _, kept := range []string{"stolen", "left", "anew"} {
		if !inner.has(kept) || inner.isDeleting(kept) {
			t.Errorf("%s was deleted", kept)
		}
	}
}

func TestABindingOfANestedKindMakesOuterInstancesDue(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.stored.put(instance("other", "z", "2"))
	run(t, b.Loop)
	b.Serve(innerExport, innerProgram(), innerMemory{newMemory()})
	b.Serve(testExport, testProgram("v1", engine.Node{ID: "inner", Target: v1alpha1.TargetConsumer, Origin: innerExport}), b.stored)
	b.idle(t)
	before, others := b.composer.count("v1 a"), b.composer.count("v1 z")
	b.bindings.changed(innerExport, "c", true)
	eventually(t, "the outer instance has a pass", func() bool { return b.composer.count("v1 a") > before })
	b.idle(t)
	if b.composer.count("v1 z") != others {
		t.Error("so has one of another consumer")
	}
}
