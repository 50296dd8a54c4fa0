package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/plane"
)

type (
	cluster     = logicalcluster.Name
	planeObject = plane.Object
)

func uidOf(uid string) types.UID { return types.UID(uid) }

// gone says whether storage has no such instance any more.
func (b *bed) gone(key v1alpha1.InstanceKey) bool {
	b.stored.mutex.Lock()
	defer b.stored.mutex.Unlock()
	return b.stored.objects[key] == nil
}

func row(target v1alpha1.Target, name string) v1alpha1.ComposedResource {
	return v1alpha1.ComposedResource{ID: "secret", Target: target, APIVersion: "v1", Kind: "Secret", Resource: "secrets", Namespace: "default", Name: name, UID: types.UID("uid-" + name)}
}

func TestUnbindReclaimsOnlyWhenItIsKnown(t *testing.T) {
	b := newBed()
	var torn []string
	b.composer.teardown = func(_ context.Context, request compose.Request, _ compose.Intent) (bool, *compose.Result, error) {
		for _, row := range inventory(request.Instance) {
			torn = append(torn, string(row.Target)+" "+row.Name)
		}
		return true, &compose.Result{Instance: request.Instance}, nil
	}
	b.stored.put(instance("c", "a", "1", row(v1alpha1.TargetConsumer, "here"), row(v1alpha1.TargetProvider, "there")))
	b.stored.put(instance("other", "b", "2", row(v1alpha1.TargetProvider, "others")))
	b.bindings.bound.Insert("other")
	b.start(t, testProgram("v1"))
	eventually(t, "bindings are looked for", func() bool { return b.bindings.asked() > 0 })
	eventually(t, "instances of unknown binding live on", func() bool { return b.composer.count("v1 a") == 1 && b.composer.count("v1 b") == 1 })
	b.idle(t)
	if b.gone(testKey("c", "a")) || len(torn) > 0 {
		t.Fatal("an instance was reclaimed although nothing is known of its binding")
	}

	b.bindings.set("c", false)
	eventually(t, "the record is finished", func() bool { return b.gone(testKey("c", "a")) })
	if len(torn) != 1 || torn[0] != "provider there" {
		t.Errorf("torn down: %v, want the provider's child alone", torn)
	}
	b.idle(t)
	if b.gone(testKey("other", "b")) {
		t.Error("another consumer's instance was reclaimed")
	}
}

func TestAnUnbindThatNobodySawIsFoundAtStart(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.bindings.unknown = false
	b.start(t, testProgram("v1"))
	eventually(t, "the instance is reclaimed", func() bool { return b.gone(testKey("c", "a")) })
}

func TestAnUnbindIsLookedForAgainUntilItIsCertain(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1"))
	b.idle(t)
	asked := b.bindings.asked()
	b.bindings.changed(testExport, "c", false) // and the read that would prove it fails
	eventually(t, "it is looked for, twice", func() bool { return b.bindings.asked() >= asked+2 })
	b.idle(t)
	if b.gone(testKey("c", "a")) {
		t.Fatal("an event alone was believed")
	}
	b.bindings.known()
	eventually(t, "the instance is reclaimed", func() bool { return b.gone(testKey("c", "a")) })
}

func TestARebindBeforeTheReclaimKeepsTheInstance(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.bindings.unknown = false
	b.bindings.bound.Insert("c")
	b.start(t, testProgram("v1"))
	eventually(t, "the first pass", func() bool { return b.composer.count("v1 a") == 1 })
	b.idle(t)
	unlock, err := b.stored.Lock(t.Context(), testKey("c", "a"))
	if err != nil {
		t.Fatal(err)
	}
	b.bindings.set("c", false)
	eventually(t, "the unbind is proven", func() bool { return b.kind(testExport).unbound.has("1") })
	b.bindings.set("c", true)
	unlock()
	eventually(t, "a pass composes it", func() bool { return b.composer.count("v1 a") >= 2 })
	if b.gone(testKey("c", "a")) {
		t.Error("the instance is gone")
	}
}

func TestTheFinalizerStaysUntilTeardownIsDone(t *testing.T) {
	b := newBed()
	left := 3
	b.composer.teardown = func(_ context.Context, request compose.Request, _ compose.Intent) (bool, *compose.Result, error) {
		left--
		return left == 0, &compose.Result{Instance: request.Instance}, nil
	}
	deleted := instance("c", "a", "1")
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	b.stored.put(deleted)
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	b.idle(t)
	if b.gone(testKey("c", "a")) || left != 2 {
		t.Fatalf("%d steps are left after the first, gone is %t", left, b.gone(testKey("c", "a")))
	}
	began := time.Now()
	b.sources.tell(of, watch.Deleted, child("s", "child", "2", "c", "1"))
	eventually(t, "the event of a child's end brings the next step", func() bool { b.idle(t); return left == 1 })
	if took := time.Since(began); took > recheckFirst/2 {
		t.Errorf("the next step came after %s: that was the timer", took)
	}
	eventually(t, "without any event the instance goes in the end", func() bool { return b.gone(testKey("c", "a")) })
}

func TestSomebodyElsesFinalizerKeepsTheInstanceWithoutPasses(t *testing.T) {
	b := newBed()
	deleted := instance("c", "a", "1")
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	deleted.SetFinalizers([]string{"example.org/mine"})
	b.stored.put(deleted)
	b.start(t, testProgram("v1"))
	b.idle(t)
	if b.gone(testKey("c", "a")) || b.composer.count("v1 a") > 0 {
		t.Error("an instance that krop had let go was touched")
	}
}

// sweepBed has an orphan of each kind of doubt on the provider's plane.
func sweepBed(t *testing.T) (*bed, source) {
	t.Helper()
	b := newBed()
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	return b, of
}

func (b *bed) place(of source, object *unstructured.Unstructured) {
	at := plane.Object{GVR: of.gvr, Namespace: object.GetNamespace(), Name: object.GetName()}
	b.shared.mutex.Lock()
	b.shared.objects[at] = object
	b.shared.mutex.Unlock()
	b.sources.tell(of, watch.Added, object)
}

// sweepWitnesses is how many orphans it takes to see that all before them have been decided on: when the second
// goes, the sweep that took the first has ended.
const sweepWitnesses = 2

// swept waits until all strays that are known have been decided on.
func (b *bed) swept(t *testing.T, of source) {
	t.Helper()
	for range sweepWitnesses {
		b.witnesses++
		name := fmt.Sprint("swept", b.witnesses)
		b.place(of, child(name, name, "1", "witness", "dead"))
		eventually(t, "a witness is swept", func() bool { return !b.shared.has(name) })
	}
}

func TestSweepDeletesOnlyProvenOrphans(t *testing.T) {
	b, of := sweepBed(t)
	b.stored.put(instance("c", "a", "alive"))
	without := func(object *unstructured.Unstructured, label string) *unstructured.Unstructured {
		labels := object.GetLabels()
		delete(labels, label)
		object.SetLabels(labels)
		return object
	}
	copied := child("copy", "u1", "1", "c", "dead")
	copied.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
	b.place(of, child("alive", "u2", "1", "c", "alive"))
	b.place(of, child("elsewhere", "u3", "1", "elsewhere", "alive")) // a stored UID, in another cluster
	b.place(of, without(child("no-consumer", "u4", "1", "c", "dead"), v1alpha1.LabelConsumerCluster))
	b.place(of, without(child("no-node", "u5", "1", "c", "dead"), v1alpha1.LabelNode))
	b.place(of, copied)
	unknownNode := child("unknown-node", "u6", "1", "c", "dead")
	labels := unknownNode.GetLabels()
	labels[v1alpha1.LabelNode] = "dropped"
	unknownNode.SetLabels(labels)
	b.place(of, unknownNode)
	b.place(of, child("orphan", "u7", "1", "c", "dead"))

	b.swept(t, of)
	deleted := b.shared.wasDeleted()
	if !slices.Contains(deleted, "orphan") || len(deleted) != 1+sweepWitnesses {
		t.Errorf("deleted: %v, want the orphan and the witnesses alone", deleted)
	}
}

func TestSweepBelievesNoFailedRead(t *testing.T) {
	b, of := sweepBed(t)
	b.stored.failUIDs = errors.New("etcd is away")
	b.place(of, child("orphan", "u", "1", "c", "dead"))
	eventually(t, "storage is asked", func() bool { return b.stored.counted(&b.stored.reads) > 0 })
	b.strays.again()
	eventually(t, "storage is asked anew, after the first sweep", func() bool { return b.stored.counted(&b.stored.reads) > 1 })
	if !b.shared.has("orphan") {
		t.Fatal("deleted without proof")
	}
	b.stored.mutex.Lock()
	b.stored.failUIDs = nil
	b.stored.mutex.Unlock()
	b.strays.again()
	eventually(t, "with proof it goes", func() bool { return !b.shared.has("orphan") })
}

func TestChildrenOfALostStorageAreLeft(t *testing.T) {
	b := newBed()
	b.Loop.config.StorageSince = time.Now().Add(-time.Hour)
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	created := func(name string, ago time.Duration) *unstructured.Unstructured {
		object := child(name, "uid-"+name, "1", "c", "dead")
		object.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-ago)))
		return object
	}
	b.place(of, created("older", 2*time.Hour))
	b.place(of, created("younger", time.Minute))
	eventually(t, "an orphan of this storage is swept", func() bool { return !b.shared.has("younger") })
	if !b.shared.has("older") {
		t.Error("a child of an earlier storage was swept")
	}
}

func TestAnObjectThatTookAnOrphansPlaceIsLeftAlone(t *testing.T) {
	b, of := sweepBed(t)
	b.place(of, child("orphan", "new", "2", "c", "dead"))
	b.sources.tell(of, watch.Added, child("orphan", "old", "1", "c", "dead"))
	b.shared.mutex.Lock()
	for at, object := range b.shared.objects {
		object.SetUID("newer")
		b.shared.objects[at] = object
	}
	b.shared.mutex.Unlock()
	b.swept(t, of)
	if !b.shared.has("orphan") {
		t.Error("deleted an object that was never seen")
	}
}

func TestChildrenOfAnInstanceThatWasRemovedByForceAreSwept(t *testing.T) {
	b, of := sweepBed(t)
	left := row(v1alpha1.TargetProvider, "left")
	b.stored.put(instance("c", "a", "1", left))
	b.place(of, child("left", "uid-left", "1", "c", "1"))
	b.idle(t)
	b.swept(t, of)
	if !b.shared.has("left") {
		t.Fatal("a live instance's child was swept")
	}
	b.stored.remove(testKey("c", "a"))
	eventually(t, "the child is swept", func() bool { return !b.shared.has("left") })
}

func TestOnASharedHostOnlyTheProvidersOwnChildrenAreSwept(t *testing.T) {
	node := secretNode
	node.Target = v1alpha1.TargetHost
	b := newBed()
	b.Loop.config.Installation = "this-krop"
	b.start(t, testProgram("v1", node))
	of := source{v1alpha1.TargetHost, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	marked := func(name, provider, installation string) *unstructured.Unstructured {
		object := child(name, "uid-"+name, "1", "c", "dead")
		labels := object.GetLabels()
		labels[v1alpha1.LabelProviderCluster] = provider
		labels[v1alpha1.LabelInstallation] = installation
		object.SetLabels(labels)
		return object
	}
	provider := testExport.Cluster.String()
	others := []*unstructured.Unstructured{
		marked("unmarked", "", b.Loop.config.Installation), marked("foreign", "another-provider", b.Loop.config.Installation),
		marked("of-another-krop", provider, "another-krop"), marked("of-no-krop", provider, ""),
	}
	for _, other := range others {
		b.place(of, other)
	}
	b.place(of, marked("own", provider, b.Loop.config.Installation))
	eventually(t, "its own orphan is swept", func() bool { return !b.shared.has("own") })
	for _, other := range others {
		if !b.shared.has(other.GetName()) {
			t.Errorf("child %s was swept", other.GetName())
		}
	}
}
