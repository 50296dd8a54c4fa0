package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// bed is a loop over fakes. Its resync is at an hour: whatever happens, happens by event.
type bed struct {
	*Loop
	stored   *memory
	composer *composer
	sources  *sources
	shared   *shared
	bindings *bindings
	// witnesses are instances that were stored so as to see something happen.
	witnesses int
}

func newBed() *bed {
	b := &bed{
		stored:   newMemory(),
		composer: &composer{},
		sources:  newSources(),
		shared:   &shared{objects: map[planeObject]*unstructured.Unstructured{}},
		bindings: &bindings{bound: sets.New[cluster](), unknown: true},
	}
	b.Loop = New(Config{
		Composer: b.composer, Planes: b.shared, Sources: b.sources, Bindings: b.bindings, Resync: time.Hour,
	})
	b.Loop.config.readPause = 0 // so that each event has a pass of its own
	return b
}

var secretNode = engine.Node{ID: "secret", Target: v1alpha1.TargetProvider, GVR: testGVR}

func (b *bed) start(t *testing.T, program *engine.Program) {
	t.Helper()
	run(t, b.Loop)
	b.Serve(testExport, program, b.stored)
}

// idle waits until all events of instances have been taken up, and nothing is queued and nothing runs. That an
// instance which is stored now has its pass shows the first: events come in order.
func (b *bed) idle(t *testing.T) {
	t.Helper()
	b.idleIn(t, "witness")
}

// idleIn stores its witness in a cluster.
func (b *bed) idleIn(t *testing.T, in string) {
	t.Helper()
	b.witnesses++
	name := fmt.Sprint("witness", b.witnesses)
	b.stored.put(instance(in, name, name))
	eventually(t, "a witness has its pass", func() bool {
		return slices.ContainsFunc(b.composer.passes(), func(pass string) bool { return strings.HasSuffix(pass, " "+name) })
	})
	b.quiet(t)
}

// quiet waits until nothing is queued and nothing runs.
func (b *bed) quiet(t *testing.T) {
	t.Helper()
	eventually(t, "the loop is quiet", func() bool { return b.queue.Len() == 0 && b.busy.Load() == 0 })
}

func child(name, uid, resourceVersion, consumer, instanceUID string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": "default", "name": name, "uid": uid, "resourceVersion": resourceVersion,
		"labels": map[string]any{
			v1alpha1.LabelInstanceUID: instanceUID, v1alpha1.LabelConsumerCluster: consumer,
			v1alpha1.LabelBlueprint: "things", v1alpha1.LabelNode: "secret",
		},
		"managedFields": []any{map[string]any{"manager": engine.FieldManager(uidOf(instanceUID)), "operation": "Apply"}},
	}}}
}

func TestEveryStoredInstanceHasAPassAtStart(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c1", "a", "1"))
	b.stored.put(instance("c2", "b", "2"))
	b.start(t, testProgram("v1"))
	eventually(t, "both have had a pass", func() bool { return b.composer.count("v1 a") > 0 && b.composer.count("v1 b") > 0 })
}

func TestAnEventOfAChildBringsAPassAndItsEchoDoesNot(t *testing.T) {
	b := newBed()
	observed := child("s", "child", "100", "c", "1")
	b.composer.apply = func(request compose.Request) (*compose.Result, error) {
		return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{Nodes: []engine.NodePlan{{
			Node: &secretNode, Children: []engine.Child{{Observed: observed}},
		}}}}, nil
	}
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	b.idle(t)
	before := b.composer.count("v1 a")

	b.sources.tell(of, watch.Added, child("s", "child", "90", "c", "1"))
	b.sources.tell(of, watch.Modified, child("s", "child", "100", "c", "1"))
	b.idle(t)
	if got := b.composer.count("v1 a"); got != before {
		t.Errorf("echoes brought %d passes", got-before)
	}
	b.sources.tell(of, watch.Modified, child("s", "child", "101", "c", "1"))
	b.idle(t)
	if got := b.composer.count("v1 a"); got != before+1 {
		t.Errorf("a change brought %d passes, want 1", got-before)
	}
	b.sources.tell(of, watch.Deleted, child("s", "child", "101", "c", "1"))
	b.idle(t)
	if got := b.composer.count("v1 a"); got != before+2 {
		t.Errorf("a change and a deletion brought %d passes, want 2", got-before)
	}
}

func TestAChildWithoutItsLabelStillFindsItsInstance(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	b.idle(t)
	before := b.composer.count("v1 a")
	stripped := child("s", "child", "1", "c", "1")
	stripped.SetLabels(map[string]string{v1alpha1.LabelBlueprint: "things"})
	b.sources.tell(of, watch.Modified, stripped)
	eventually(t, "a pass repairs it", func() bool { return b.composer.count("v1 a") == before+1 })
}

// TestAChildWithAnothersLabelStillFindsItsInstance has a user of the plane write another instance's label there, and
// delete the child then.
func TestAChildWithAnothersLabelStillFindsItsInstance(t *testing.T) {
	b := newBed()
	mine, others := instance("c", "a", "1"), instance("c2", "b", "2")
	b.stored.put(mine)
	b.stored.put(others)
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	b.idle(t)
	before := b.composer.count("v1 a")
	relabelled := child("s", "child", "100", "c", "1")
	relabelled.SetLabels(map[string]string{
		v1alpha1.LabelBlueprint: "things", v1alpha1.LabelInstanceUID: string(others.GetUID()),
	})
	relabelled.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManagerPrefix + string(mine.GetUID())}})
	b.sources.tell(of, watch.Modified, relabelled)
	eventually(t, "a pass repairs it", func() bool { return b.composer.count("v1 a") == before+1 })
	b.sources.tell(of, watch.Deleted, relabelled)
	eventually(t, "a pass makes it anew", func() bool { return b.composer.count("v1 a") == before+2 })
}

func TestARequestThatComposedSparesThePass(t *testing.T) {
	b := newBed()
	b.start(t, testProgram("v1"))
	key := testKey("c", "a")
	unlock, err := b.stored.Lock(t.Context(), key) // as a request does
	if err != nil {
		t.Fatal(err)
	}
	created := b.stored.put(instance("c", "a", "1"))
	eventually(t, "a pass gives up waiting for the request", func() bool { return b.stored.counted(&b.stored.refused) > 0 })
	_ = unstructured.SetNestedField(created.Object, "v1", "status", "composition", "revision")
	composed := b.stored.put(created)
	b.Composed(key, &compose.Result{Instance: composed, Plan: &engine.Plan{}}, nil)
	before := b.stored.counted(&b.stored.granted)
	unlock()
	eventually(t, "the loop comes back", func() bool { return b.stored.counted(&b.stored.granted) > before })
	b.idle(t)
	if passes := b.composer.count("v1 a"); passes != 0 {
		t.Errorf("%d passes after a request that did everything", passes)
	}

	b.Composed(key, &compose.Result{Instance: composed, Err: errors.New("quota")}, nil)
	eventually(t, "a pass carries on where a request failed", func() bool { return b.composer.count("v1 a") == 1 })
}

func TestARequestWithAnOlderProgramIsFollowedByAPass(t *testing.T) {
	b := newBed()
	b.start(t, testProgram("v2"))
	composed := instance("c", "a", "1")
	_ = unstructured.SetNestedField(composed.Object, "v1", "status", "composition", "revision")
	b.Composed(testKey("c", "a"), &compose.Result{Instance: b.stored.put(composed), Plan: &engine.Plan{}}, nil)
	eventually(t, "a pass with the new program", func() bool { return b.composer.count("v2 a") > 0 })
}

func TestAChildsEventThatCameBeforeItsInstanceIsNotLost(t *testing.T) {
	b := newBed()
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	b.sources.tell(of, watch.Modified, child("s", "child", "2", "c", "1"))
	composed := instance("c", "a", "1")
	composed.SetResourceVersion("5") // not stored: the watch of instances lags
	_ = unstructured.SetNestedField(composed.Object, "v1", "status", "composition", "revision")
	b.stored.objects[testKey("c", "a")] = composed
	b.Composed(testKey("c", "a"), &compose.Result{Instance: composed, Plan: &engine.Plan{}}, nil)
	eventually(t, "a pass", func() bool { return b.composer.count("v1 a") == 1 })
}

func TestAConflictStartsOverAtOnceFromFreshReads(t *testing.T) {
	b := newBed()
	var versions []string
	b.composer.apply = func(request compose.Request) (*compose.Result, error) {
		versions = append(versions, request.Instance.GetResourceVersion())
		if len(versions) == 1 {
			b.stored.put(request.Instance) // somebody else writes
			return nil, fmt.Errorf("recording: %w", apierrors.NewConflict(testResource, "a", nil))
		}
		return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
	}
	b.stored.put(instance("c", "a", "1"))
	began := time.Now()
	b.start(t, testProgram("v1"))
	eventually(t, "it composes again", func() bool { return len(b.composer.passes()) >= 2 })
	if took := time.Since(began); took > retryFirst {
		t.Errorf("started over after %s: that was a retry", took)
	}
	b.idle(t)
	if versions[0] == versions[1] {
		t.Error("composed again from what had been read before")
	}
}

func TestAFailingOrHangingInstanceDoesNotDelayOthers(t *testing.T) {
	b := newBed()
	hang := make(chan struct{})
	defer close(hang)
	b.composer.apply = func(request compose.Request) (*compose.Result, error) {
		switch request.Instance.GetName() {
		case "fails":
			return nil, errors.New("no")
		case "panics":
			panic("no")
		case "hangs":
			<-hang
		}
		return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
	}
	for i, name := range []string{"fails", "panics", "hangs"} {
		b.stored.put(instance("bad", name, fmt.Sprint("bad", i)))
	}
	b.start(t, testProgram("v1"))
	eventually(t, "the failing ones are retried", func() bool {
		return b.composer.count("v1 fails") >= 3 && b.composer.count("v1 panics") >= 3 && b.composer.count("v1 hangs") == 1
	})
	for i := range 50 {
		b.stored.put(instance("good", fmt.Sprint("good", i), fmt.Sprint("good", i)))
	}
	began := time.Now()
	eventually(t, "the others have a pass", func() bool {
		for i := range 50 {
			if b.composer.count(fmt.Sprint("v1 good", i)) == 0 {
				return false
			}
		}
		return true
	})
	if took := time.Since(began); took > time.Second {
		t.Errorf("the others took %s", took)
	}
}

func TestABusyInstanceDoesNotHoldAWorker(t *testing.T) {
	b := newBed()
	b.Loop.config.Workers = 1
	unlock, err := b.stored.Lock(t.Context(), testKey("c", "busy"))
	if err != nil {
		t.Fatal(err)
	}
	b.stored.put(instance("c", "busy", "1"))
	b.start(t, testProgram("v1"))
	eventually(t, "the worker waits for it", func() bool { return b.busy.Load() == 1 })
	b.stored.put(instance("c", "free", "2"))
	eventually(t, "another instance has its pass", func() bool { return b.composer.count("v1 free") == 1 })
	unlock()
	eventually(t, "the busy one has its pass in the end", func() bool { return b.composer.count("v1 busy") == 1 })
}

func TestASwappedProgramReachesEveryInstanceAndTheSameOneNone(t *testing.T) {
	b := newBed()
	old := v1alpha1.ComposedResource{ID: "config", Target: v1alpha1.TargetProvider, APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps", Name: "x"}
	b.stored.put(instance("c", "a", "1", old))
	b.stored.put(instance("c", "b", "2"))
	b.start(t, testProgram("v1", secretNode))
	secrets := source{v1alpha1.TargetProvider, testGVR}
	dropped := source{v1alpha1.TargetProvider, old.GVR()}
	eventually(t, "what only an inventory lists is watched too", func() bool { return b.sources.isOpen(secrets) && b.sources.isOpen(dropped) })
	b.idle(t)

	b.Serve(testExport, testProgram("v1", secretNode), b.stored)
	b.idle(t)
	if a := b.composer.count("v1 a"); a != 1 || b.sources.started(secrets) != 1 {
		t.Errorf("the same program again: %d passes, %d watches", a, b.sources.started(secrets))
	}

	b.Serve(testExport, testProgram("v2"), b.stored)
	eventually(t, "all have a pass with the new program", func() bool { return b.composer.count("v2 a") == 1 && b.composer.count("v2 b") == 1 })
	eventually(t, "what nobody needs isn't watched", func() bool { return !b.sources.isOpen(secrets) })
	b.stored.put(instance("c", "a", "1"))
	eventually(t, "what the last inventory has dropped isn't watched", func() bool { return !b.sources.isOpen(dropped) })

	b.Stop(testExport)
	b.quiet(t)
	passes := len(b.composer.passes())
	b.Enqueue(testKey("c", "a"))
	b.quiet(t)
	if len(b.composer.passes()) != passes {
		t.Error("an instance of a kind that isn't served any more had a pass")
	}
}

func TestReplacedStorageIsFollowed(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1"))
	eventually(t, "the first pass", func() bool { return b.composer.count("v1 a") == 1 })
	replaced := newMemory()
	b.Serve(testExport, testProgram("v2"), replaced)
	replaced.put(instance("c", "b", "2"))
	eventually(t, "an instance of the new storage has its pass", func() bool { return b.composer.count("v2 b") >= 1 })
	b.stored = replaced
	b.idle(t)
	if _, ok := b.kind(testExport).index.find("1"); ok {
		t.Error("an instance that isn't stored is still known")
	}
}

func TestTickTellsAHangFromHavingNothingToDo(t *testing.T) {
	b := newBed()
	hang := make(chan struct{})
	b.composer.apply = func(request compose.Request) (*compose.Result, error) {
		<-hang
		return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
	}
	b.start(t, testProgram("v1"))
	if age := time.Since(b.Tick()); age > 10*time.Millisecond {
		t.Errorf("an idle loop's tick is %s old", age)
	}
	b.stored.put(instance("c", "a", "1"))
	eventually(t, "the pass runs", func() bool { return len(b.composer.passes()) == 1 })
	eventually(t, "the tick of a loop that hangs grows old", func() bool { return time.Since(b.Tick()) > 90*time.Millisecond })
	close(hang)
	b.idle(t)
	if age := time.Since(b.Tick()); age > 10*time.Millisecond {
		t.Errorf("an idle loop's tick is %s old", age)
	}
}

func TestOnlyOwnedClustersAreWorkedOn(t *testing.T) {
	b := newBed()
	leases := NewLeases(nil, "", "")
	b.Loop.config.Ownership = leases
	leases.Subscribe(b.gained)
	b.stored.put(instance("mine", "a", "1"))
	b.stored.put(instance("theirs", "b", "2"))
	leases.set([]int{sliceOf("mine")})
	if leases.Owns("theirs") {
		t.Fatal("both clusters are in one slice")
	}
	b.start(t, testProgram("v1"))
	eventually(t, "the owned one has a pass", func() bool { return b.composer.count("v1 a") == 1 })
	b.idleIn(t, "mine")
	if b.composer.count("v1 b") != 0 {
		t.Error("another replica's instance had a pass")
	}
	leases.set([]int{sliceOf("mine"), sliceOf("theirs")})
	eventually(t, "what was gained has a pass", func() bool { return b.composer.count("v1 b") == 1 })
	if b.composer.count("v1 a") != 1 {
		t.Error("what was owned before had another pass")
	}
}

func TestResyncGoesOverEveryInstanceOncePerRound(t *testing.T) {
	b := newBed()
	b.Loop.config.Resync = resyncSlots * 5 * time.Millisecond
	for i := range 20 {
		b.stored.put(instance("c", fmt.Sprint(i), fmt.Sprint(i)))
	}
	b.start(t, testProgram("v1"))
	eventually(t, "all have had passes without events", func() bool {
		for i := range 20 {
			if b.composer.count(fmt.Sprint("v1 ", i)) < 3 {
				return false
			}
		}
		return true
	})
	passes := len(b.composer.passes())
	if passes > 20*6 {
		t.Errorf("%d passes over 20 instances: a resync is more than one pass each", passes)
	}
}

func TestAnEventEndsTheBackoffOfAFailingInstance(t *testing.T) {
	b := newBed()
	b.composer.apply = func(request compose.Request) (*compose.Result, error) {
		if request.Instance.GetName() == "a" {
			return nil, errors.New("exceeded quota")
		}
		return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
	}
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	key := testKey("c", "a")
	eventually(t, "passes fail", func() bool { return b.queue.failures.NumRequeues(key) >= 3 })
	before := b.composer.count("v1 a")
	b.sources.tell(of, watch.Modified, child("s", "child", "7", "c", "1"))
	eventually(t, "another pass", func() bool { return b.composer.count("v1 a") > before })
	b.quiet(t)
	if failures := b.queue.failures.NumRequeues(key); failures > 2 {
		t.Errorf("the next try is that of failure %d", failures)
	}
}

func TestNothingIsWatchedAfterTheEnd(t *testing.T) {
	b := newBed()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Run(ctx) }()
	b.Serve(testExport, testProgram("v1"), b.stored)
	eventually(t, "the instances are watched", func() bool { return b.stored.watched() == 1 })
	cancel()
	<-ended
	replaced := newMemory()
	b.Serve(testExport, testProgram("v2"), replaced)
	b.watches.Wait()
	if replaced.watched() != 0 {
		t.Error("what was served last is watched")
	}
}

// watched is how often the instances have been watched.
func (m *memory) watched() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return len(m.watchers)
}
