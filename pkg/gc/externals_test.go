package gc

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

var (
	vpcs      = schema.GroupVersionResource{Group: "net.example.org", Version: "v1", Resource: "vpcs"}
	vpcNode   = engine.Node{ID: "vpc", Target: v1alpha1.TargetConsumer, GVR: vpcs, External: true}
	vpcsNode  = engine.Node{ID: "vpcs", Target: v1alpha1.TargetConsumer, GVR: vpcs, External: true, Selects: true}
	allVPCs   = source{outside(v1alpha1.TargetConsumer), vpcs}
	hostNode  = engine.Node{ID: "image", Target: v1alpha1.TargetHost, GVR: vpcs, External: true}
	allOnHost = source{outside(v1alpha1.TargetHost), vpcs}
)

// named refers to an object of the consumer's namespace "default".
func named(name string) engine.Reference {
	return engine.Reference{Target: v1alpha1.TargetConsumer, GVR: vpcs, Namespace: "default", Name: name}
}

func selecting(t *testing.T, selector string) engine.Reference {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Reference{Target: v1alpha1.TargetConsumer, GVR: vpcs, Namespace: "default", Selector: parsed}
}

// vpc is an object as a watch tells of it.
func vpc(cluster, name string, labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace("default")
	object.SetName(name)
	object.SetLabels(labels)
	if cluster != "" {
		object.SetAnnotations(map[string]string{v1alpha1.AnnotationCluster: cluster})
	}
	return object
}

// reading is what instances read, by their names, and what happens while they do.
type reading struct {
	mutex      sync.Mutex
	references map[string][]engine.Reference
	meanwhile  func(instance string) // between the read and the plan
}

func (r *reading) set(instance string, references ...engine.Reference) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.references = maps.Clone(r.references)
	if r.references == nil {
		r.references = map[string][]engine.Reference{}
	}
	r.references[instance] = references
}

// apply composes as pkg/compose does: it says what is to be read, reads it, and answers with a plan that
// refers to it.
func (r *reading) apply(request compose.Request) (*compose.Result, error) {
	name := request.Instance.GetName()
	r.mutex.Lock()
	references, meanwhile := r.references[name], r.meanwhile
	r.mutex.Unlock()
	if request.Reads != nil {
		request.Reads(references)
	}
	if meanwhile != nil {
		meanwhile(name)
	}
	return &compose.Result{Instance: request.Instance, Plan: referring(references...)}, nil
}

func referring(references ...engine.Reference) *engine.Plan {
	plan := &engine.Plan{}
	for i := range references {
		plan.Nodes = append(plan.Nodes, engine.NodePlan{Node: &vpcNode, Reference: &references[i]})
	}
	return plan
}

// readingBed is a bed whose instances read.
func readingBed(references map[string][]engine.Reference) (*bed, *reading) {
	b, r := newBed(), &reading{references: references}
	b.composer.apply = r.apply
	return b, r
}

// listed starts the loop and waits until everything is still, with the watch of a source listed.
func (b *bed) listed(t *testing.T, program *engine.Program, of source) {
	t.Helper()
	b.start(t, program)
	eventually(t, "external objects are watched", func() bool { return b.sources.isOpen(of) })
	b.sources.tell(of, watch.Bookmark, nil)
	b.idle(t)
}

// brings checks that what happens brings these instances a pass each, and the others none.
func (b *bed) brings(t *testing.T, what string, happens func(), want ...string) {
	t.Helper()
	before := b.counts()
	happens()
	b.idle(t)
	for _, name := range want {
		before[name]++
	}
	after := b.counts()
	for name, count := range after {
		if count != before[name] {
			t.Errorf("%s: %s has had %d passes, want %d", what, name, count, before[name])
		}
	}
}

// counts are the passes by instance, without witnesses.
func (b *bed) counts() map[string]int {
	counts := map[string]int{}
	for _, pass := range b.composer.passes() {
		if _, name, _ := strings.Cut(pass, " "); !strings.HasPrefix(name, "witness") {
			counts[name]++
		}
	}
	return counts
}

func TestWhatAnInstanceReadsByNameMakesItDue(t *testing.T) {
	b, _ := readingBed(map[string][]engine.Reference{"a": {named("net")}, "b": {named("other")}, "c": {named("net")}})
	b.stored.put(instance("c1", "a", "1"))
	b.stored.put(instance("c1", "b", "2"))
	b.stored.put(instance("c2", "c", "3"))
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		b.brings(t, string(event), func() { b.sources.tell(allVPCs, event, vpc("c1", "net", nil)) }, "a")
	}
	b.brings(t, "nobody reads it", func() { b.sources.tell(allVPCs, watch.Added, vpc("c1", "third", nil)) })
	elsewhere := vpc("c1", "net", nil)
	elsewhere.SetNamespace("elsewhere")
	b.brings(t, "in another namespace", func() { b.sources.tell(allVPCs, watch.Added, elsewhere) })
	if started := b.sources.started(allVPCs); started != 1 {
		t.Errorf("%d watches for three instances", started)
	}
}

func TestWhatIsOnASharedPlaneMakesAllConsumersInstancesDueThatReadIt(t *testing.T) {
	onHost := engine.Reference{Target: v1alpha1.TargetHost, GVR: vpcs, Namespace: "default", Name: "image"}
	b, _ := readingBed(map[string][]engine.Reference{"a": {onHost}, "b": {onHost}, "c": {named("image")}})
	b.stored.put(instance("c1", "a", "1"))
	b.stored.put(instance("c2", "b", "2"))
	b.stored.put(instance("c2", "c", "3"))
	b.listed(t, testProgram("v1", hostNode), allOnHost)
	b.brings(t, "a change", func() { b.sources.tell(allOnHost, watch.Modified, vpc("", "image", nil)) }, "a", "b")
}

func TestWhatASelectorPicksMakesItsInstancesDue(t *testing.T) {
	b, _ := readingBed(map[string][]engine.Reference{
		"prod": {selecting(t, "tier=prod")}, "test": {selecting(t, "tier in (test)")}, "another": {selecting(t, "tier=prod")},
	})
	b.stored.put(instance("c1", "prod", "1"))
	b.stored.put(instance("c1", "test", "2"))
	b.stored.put(instance("c2", "another", "3"))
	b.listed(t, testProgram("v1", vpcsNode), allVPCs)
	tell := func(event watch.EventType, labels map[string]string) func() {
		return func() { b.sources.tell(allVPCs, event, vpc("c1", "net", labels)) }
	}
	prod, test := map[string]string{"tier": "prod", "x": "y"}, map[string]string{"tier": "test"}
	b.brings(t, "an object that nobody selects", tell(watch.Added, nil))
	b.brings(t, "it comes into a selection", tell(watch.Modified, prod), "prod")
	b.brings(t, "it changes within", tell(watch.Modified, prod), "prod")
	b.brings(t, "it changes over to another", tell(watch.Modified, test), "prod", "test")
	b.brings(t, "it leaves all", tell(watch.Modified, nil), "test")
	b.brings(t, "it changes outside", tell(watch.Modified, map[string]string{"x": "y"}))
	b.brings(t, "it comes back", tell(watch.Modified, test), "test")
	b.brings(t, "it goes, and the watch knows no more than its name", tell(watch.Deleted, nil), "test")
	b.brings(t, "it comes again", tell(watch.Added, prod), "prod")
}

func TestASelectionOverAllNamespacesSeesEach(t *testing.T) {
	everywhere := selecting(t, "tier=prod")
	everywhere.Namespace = ""
	b, _ := readingBed(map[string][]engine.Reference{"a": {everywhere}, "b": {selecting(t, "tier=prod")}})
	b.stored.put(instance("c1", "a", "1"))
	b.stored.put(instance("c1", "b", "2"))
	b.listed(t, testProgram("v1", vpcsNode), allVPCs)
	elsewhere := vpc("c1", "net", map[string]string{"tier": "prod"})
	elsewhere.SetNamespace("elsewhere")
	b.brings(t, "an object elsewhere", func() { b.sources.tell(allVPCs, watch.Added, elsewhere) }, "a")
}

// TestAnObjectThatAppearsAfterItWasFoundMissingIsNotMissed has the event come while the pass that found nothing
// isn't over: what it will refer to is known to nobody else yet.
func TestAnObjectThatAppearsAfterItWasFoundMissingIsNotMissed(t *testing.T) {
	b, r := readingBed(map[string][]engine.Reference{"a": {named("net")}})
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	var once sync.Once
	r.mutex.Lock()
	r.meanwhile = func(name string) {
		if name == "a" {
			once.Do(func() { b.sources.tell(allVPCs, watch.Added, vpc("c1", "net", nil)) })
		}
	}
	r.mutex.Unlock()
	b.stored.put(instance("c1", "a", "1"))
	eventually(t, "another pass", func() bool { return b.composer.count("v1 a") == 2 })
}

// TestWhatChangesBeforeTheFirstListIsNotMissed has an object go after it was read and before the watch has listed:
// no event will ever tell of it.
func TestWhatChangesBeforeTheFirstListIsNotMissed(t *testing.T) {
	net := vpc("c1", "net", map[string]string{"tier": "prod"})
	b, r := readingBed(map[string][]engine.Reference{"a": {named("net")}, "b": {selecting(t, "tier=prod")}})
	b.stored.put(instance("c1", "a", "1"))
	b.stored.put(instance("c1", "b", "2"))
	b.stored.put(instance("c1", "c", "3"))
	b.start(t, testProgram("v1", vpcsNode))
	eventually(t, "external objects are watched", func() bool { return b.sources.isOpen(allVPCs) })
	b.idle(t)
	b.brings(t, "what is listed", func() { b.sources.tell(allVPCs, watch.Added, net) })
	b.brings(t, "the end of the list", func() { b.sources.tell(allVPCs, watch.Bookmark, nil) }, "a", "b")
	r.set("c", named("net"))
	b.brings(t, "a reader that comes later", func() { b.stored.put(instance("c1", "c", "3")) }, "c")
	b.brings(t, "a deletion", func() { b.sources.tell(allVPCs, watch.Deleted, net) }, "a", "b", "c")
}

// TestWhatARequestReadsMakesItsInstanceDue has an event come before the watch of instances has the new instance.
func TestWhatARequestReadsMakesItsInstanceDue(t *testing.T) {
	b, r := readingBed(nil)
	r.set("a", named("net"))
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	key, created := testKey("c1", "a"), instance("c1", "a", "1")
	created.SetResourceVersion("5")
	_ = unstructured.SetNestedField(created.Object, "v1", "status", "composition", "revision")
	unlock, err := b.stored.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b.stored.mutex.Lock()
	b.stored.objects[key] = created // the watch of instances lags
	b.stored.mutex.Unlock()
	b.Reads(key, "1", []engine.Reference{named("net")})
	b.sources.tell(allVPCs, watch.Added, vpc("c1", "net", nil))
	b.Composed(key, &compose.Result{Instance: created, Plan: referring(named("net"))}, nil)
	unlock()
	eventually(t, "a pass", func() bool { return b.composer.count("v1 a") == 1 })
	b.idle(t)
	b.brings(t, "a later event", func() { b.sources.tell(allVPCs, watch.Modified, vpc("c1", "net", nil)) }, "a")
}

func TestWhatAnInstanceReadsNoMoreDoesNotMakeItDue(t *testing.T) {
	b, r := readingBed(map[string][]engine.Reference{"a": {named("net"), selecting(t, "tier=prod")}})
	b.stored.put(instance("c1", "a", "1"))
	b.listed(t, testProgram("v1", vpcsNode), allVPCs)
	r.set("a", named("other"))
	b.brings(t, "an edit", func() { b.stored.put(instance("c1", "a", "1")) }, "a")
	b.brings(t, "what it read before", func() {
		b.sources.tell(allVPCs, watch.Modified, vpc("c1", "net", nil))
		b.sources.tell(allVPCs, watch.Added, vpc("c1", "prod", map[string]string{"tier": "prod"}))
	})
	b.brings(t, "what it reads now", func() { b.sources.tell(allVPCs, watch.Modified, vpc("c1", "other", nil)) }, "a")
}

func TestNothingIsKeptOfInstancesThatAreGone(t *testing.T) {
	b, _ := readingBed(map[string][]engine.Reference{"a": {named("net")}, "b": {selecting(t, "tier=prod")}, "c": {named("net")}})
	for i, name := range []string{"a", "b", "c"} {
		b.stored.put(instance("c1", name, fmt.Sprint(i)))
	}
	b.listed(t, testProgram("v1", vpcsNode), allVPCs)
	b.stored.remove(testKey("c1", "a"))
	b.stored.remove(testKey("c1", "b"))
	if err := b.stored.Delete(t.Context(), testKey("c1", "c")); err != nil { // torn down
		t.Fatal(err)
	}
	known := b.kind(testExport).externals.readers
	eventually(t, "nothing is known of what they read", func() bool {
		known.mutex.RLock()
		defer known.mutex.RUnlock()
		return len(known.instances) == 0 && len(known.audiences) == 0 && len(known.selecting) == 0
	})
}

func TestExternalWatchesComeAndGoWithTheProgram(t *testing.T) {
	b, _ := readingBed(map[string][]engine.Reference{"a": {named("net")}})
	b.stored.put(instance("c1", "a", "1"))
	b.start(t, testProgram("v1"))
	b.idle(t)
	if b.sources.isOpen(allVPCs) {
		t.Fatal("what no node reads is watched")
	}
	b.Serve(testExport, testProgram("v2", vpcNode, hostNode), b.stored)
	eventually(t, "a new program's external objects are watched", func() bool { return b.sources.isOpen(allVPCs) && b.sources.isOpen(allOnHost) })
	b.Serve(testExport, testProgram("v3", vpcsNode), b.stored)
	eventually(t, "what it has dropped isn't", func() bool { return !b.sources.isOpen(allOnHost) })
	if b.sources.started(allVPCs) != 1 {
		t.Error("a watch that both programs need was begun anew")
	}
	b.Stop(testExport)
	eventually(t, "nothing is watched for a kind that isn't served", func() bool { return !b.sources.isOpen(allVPCs) })
}

// TestASelectorThatAProgramBringsFindsWhatWasWatchedForNames knows no labels of what was told of before.
func TestASelectorThatAProgramBringsFindsWhatWasWatchedForNames(t *testing.T) {
	b, r := readingBed(nil)
	b.stored.put(instance("c1", "a", "1"))
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	prod := vpc("c1", "net", map[string]string{"tier": "prod"})
	b.brings(t, "an object", func() { b.sources.tell(allVPCs, watch.Added, prod) })
	r.set("a", selecting(t, "tier=prod"))
	b.brings(t, "a new program", func() { b.Serve(testExport, testProgram("v2", vpcsNode), b.stored) }, "a")
	b.brings(t, "it leaves the selection", func() { b.sources.tell(allVPCs, watch.Modified, vpc("c1", "net", nil)) }, "a")
}

func TestAWatchThatCannotListIsBegunAnewWhenABindingAppears(t *testing.T) {
	b, _ := readingBed(nil)
	b.start(t, testProgram("v1", vpcNode))
	eventually(t, "external objects are watched", func() bool { return b.sources.isOpen(allVPCs) })
	eventually(t, "a watch that has waited for long is begun anew", func() bool {
		b.bindings.set("c1", true)
		return b.sources.started(allVPCs) == 2
	})
}

// TestAWatchIsGivenMoreTimeWheneverItIsBegunAnew looks by hand, with watches made older than they are.
func TestAWatchIsGivenMoreTimeWheneverItIsBegunAnew(t *testing.T) {
	b := newBed()
	e := newServed(b.Loop, testExport, testProgram("v1", vpcNode, hostNode), b.stored).externals
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); e.running.Wait() })
	consumers, host := source{v1alpha1.TargetConsumer, vpcs}, source{v1alpha1.TargetHost, vpcs}
	e.look(ctx)
	wake := func(of source, age time.Duration) (before, after *externalWatch) {
		before = e.watches[of]
		before.began = time.Now().Add(-age)
		e.wake()
		e.look(ctx)
		return before, e.watches[of]
	}
	if before, after := wake(consumers, 0); before != after {
		t.Error("a watch that has just begun was begun anew")
	}
	for range 3 {
		before, after := wake(consumers, e.watches[consumers].patience)
		if before == after || after.patience != 2*before.patience {
			t.Errorf("begun anew: %t, with patience of %s after %s", before != after, after.patience, before.patience)
		}
	}
	if before, after := wake(host, time.Hour); before != after {
		t.Error("a binding has begun a watch anew that doesn't depend on it")
	}
	e.watches[consumers].told(watch.Bookmark, nil)
	if before, after := wake(consumers, time.Hour); before != after {
		t.Error("a watch that has listed was begun anew")
	}
}

func TestOnlyTheOwnerActsOnWhatAnInstanceReads(t *testing.T) {
	b, _ := readingBed(nil)
	leases := NewLeases(nil, "", "")
	b.Loop.config.Ownership = leases
	leases.Subscribe(b.gained)
	leases.set([]int{sliceOf("mine"), sliceOf("witness")})
	if leases.Owns("theirs") {
		t.Fatal("both clusters are in one slice")
	}
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	b.Reads(testKey("theirs", "a"), "1", []engine.Reference{named("net")}) // a request that came to this replica
	b.brings(t, "an event", func() { b.sources.tell(allVPCs, watch.Added, vpc("theirs", "net", nil)) })
}

// TestWhatAnInstanceReadsIsAnothersChild has the child's own instance told of a change that the other one has
// taken into account.
func TestWhatAnInstanceReadsIsAnothersChild(t *testing.T) {
	inside := engine.Node{ID: "net", Target: v1alpha1.TargetConsumer, GVR: vpcs}
	b, _ := readingBed(map[string][]engine.Reference{"reads": {named("net")}})
	b.stored.put(instance("c1", "owns", "1"))
	b.stored.put(instance("c1", "reads", "2"))
	b.listed(t, testProgram("v1", inside, vpcNode), allVPCs)
	ofChildren := source{v1alpha1.TargetConsumer, vpcs}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(ofChildren) })
	changed := child("net", "net", "7", "c1", "1")
	changed.SetAnnotations(map[string]string{v1alpha1.AnnotationCluster: "c1"})
	b.brings(t, "a change, to the reader", func() { b.sources.tell(allVPCs, watch.Modified, changed) }, "reads")
	b.brings(t, "the same change, to the owner", func() { b.sources.tell(ofChildren, watch.Modified, changed) }, "owns")
}

func TestAnInstanceOfTheSameNameIsAnother(t *testing.T) {
	r, key := newReaders(), testKey("c1", "a")
	r.add(key, "old", []engine.Reference{named("net")})
	r.add(key, "new", []engine.Reference{named("other")})
	r.remove(key, "old")
	at := placeOf(source{v1alpha1.TargetConsumer, vpcs}, "c1")
	if found := r.of(at, "default", "net", nil); len(found) != 0 {
		t.Errorf("what the predecessor read finds %v", found)
	}
	if found := r.of(at, "default", "other", nil); len(found) != 1 || found[0] != key {
		t.Errorf("what the successor reads finds %v", found)
	}
}

func TestLabelsAreRememberedWithinBounds(t *testing.T) {
	large := map[string]string{}
	for i := range maxLabelBytes / 20 {
		large[fmt.Sprintf("label-%08d", i)] = "abcdefgh"
	}
	for _, test := range []struct {
		name    string
		wanted  bool
		labels  map[string]string
		isKnown bool
	}{
		{"some", true, map[string]string{"a": "b", "c": ""}, true},
		{"none", true, nil, true},
		{"too many", true, large, false},
		{"nobody selects", false, map[string]string{"a": "b"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newLabelMemory(test.wanted)
			m.change(watch.Added, vpc("c1", "net", test.labels))
			before := m.change(watch.Deleted, vpc("c1", "net", nil))[0]
			if known := before != nil; known != test.isKnown {
				t.Fatalf("known is %t, want %t", known, test.isKnown)
			}
			if set, _ := before.(labels.Set); test.isKnown && !labels.Equals(set, test.labels) {
				t.Errorf("had %v, want %v", set, test.labels)
			}
			if len(m.known) != 0 {
				t.Error("what has gone is remembered")
			}
		})
	}
}
