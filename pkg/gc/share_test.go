package gc

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// hanging is a bed whose passes over some instances hang until they are let go.
func hanging(hangs func(compose.Request) bool) (b *bed, letGo func()) {
	b = newBed()
	hang := make(chan struct{})
	b.composer.apply = func(request compose.Request) (*compose.Result, error) {
		if hangs(request) {
			<-hang
		}
		return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
	}
	return b, sync.OnceFunc(func() { close(hang) })
}

// begun counts the passes that have begun whose spec hash and instance begin so.
func (b *bed) begun(start string) int {
	n := 0
	for _, pass := range b.composer.passes() {
		if strings.HasPrefix(pass, start) {
			n++
		}
	}
	return n
}

func TestOneConsumersPassesLeaveWorkersForOthers(t *testing.T) {
	b, letGo := hanging(func(r compose.Request) bool { return strings.HasPrefix(r.Instance.GetName(), "big") })
	defer letGo()
	b.start(t, testProgram("v1"))
	b.idle(t)
	most := budget.Passes.Default
	for i := range 2 * DefaultWorkers {
		b.stored.put(instance("big", fmt.Sprint("big", i), fmt.Sprint("big", i)))
	}
	eventually(t, "it has its share", func() bool { return b.begun("v1 big") == most })
	for i := range DefaultWorkers {
		b.stored.put(instance("small", fmt.Sprint("small", i), fmt.Sprint("small", i)))
	}
	eventually(t, "the other consumer's have a pass", func() bool { return b.begun("v1 small") == DefaultWorkers })
	if got := b.begun("v1 big"); got != most {
		t.Errorf("%d passes of one consumer at a time, want %d", got, most)
	}
	letGo()
	eventually(t, "all have a pass", func() bool { return b.begun("v1 big") == 2*DefaultWorkers })
}

func TestABlueprintsEditLeavesWorkersForOthers(t *testing.T) {
	b, letGo := hanging(func(r compose.Request) bool {
		return r.Program.SpecHash == "v2" && strings.HasPrefix(r.Instance.GetName(), "old")
	})
	defer letGo()
	for i := range 2 * DefaultWorkers {
		b.stored.put(instance(fmt.Sprint("c", i), fmt.Sprint("old", i), fmt.Sprint("old", i)))
	}
	b.start(t, testProgram("v1"))
	eventually(t, "all have a pass", func() bool { return b.begun("v1 old") == 2*DefaultWorkers })
	b.idle(t)
	b.Serve(testExport, testProgram("v2"), b.stored)
	most := budget.BackgroundPassesPerExport.Default
	eventually(t, "the edit has its share", func() bool { return b.begun("v2 old") == most })
	for i := range DefaultWorkers {
		b.stored.put(instance(fmt.Sprint("c", i), fmt.Sprint("new", i), fmt.Sprint("new", i)))
	}
	eventually(t, "what consumers do has a pass", func() bool { return b.begun("v2 new") == DefaultWorkers })
	if got := b.begun("v2 old"); got != most {
		t.Errorf("%d passes for an edit at a time, want %d", got, most)
	}
	letGo()
	eventually(t, "all have a pass", func() bool { return b.begun("v2 old") == 2*DefaultWorkers })
}

// TestManyChangesOfWhatIsReadHaveFewPasses has a pause that doesn't end.
func TestManyChangesOfWhatIsReadHaveFewPasses(t *testing.T) {
	b, _ := readingBed(map[string][]engine.Reference{"a": {named("net")}, "b": {named("other")}, "both": {named("net"), named("other")}})
	b.Loop.config.readPause = time.Hour
	for _, name := range []string{"a", "b", "both"} {
		b.stored.put(instance("c1", name, name))
	}
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	change := func(name string) func() {
		return func() { b.sources.tell(allVPCs, watch.Modified, vpc("c1", name, nil)) }
	}
	b.brings(t, "a change", change("net"), "a", "both")
	b.brings(t, "the same again", change("net"))
	b.brings(t, "a change of another object", change("other"), "b")
	b.brings(t, "its own event", func() { b.stored.put(instance("c1", "a", "a")) }, "a")
}

func TestTheLastChangeOfWhatIsReadHasAPass(t *testing.T) {
	b, r := readingBed(map[string][]engine.Reference{"a": {named("net")}})
	b.Loop.config.readPause = 20 * time.Millisecond
	b.stored.put(instance("c1", "a", "1"))
	b.listed(t, testProgram("v1", vpcNode), allVPCs)
	var mutex sync.Mutex
	changes, taken := 0, 0
	r.mutex.Lock()
	r.meanwhile = func(name string) {
		mutex.Lock()
		defer mutex.Unlock()
		if name == "a" {
			taken = changes
		}
	}
	r.mutex.Unlock()
	for burst := range 10 {
		for range 100 {
			mutex.Lock()
			changes++
			mutex.Unlock()
			b.sources.tell(allVPCs, watch.Modified, vpc("c1", "net", nil))
		}
		eventually(t, fmt.Sprint("the last change of burst ", burst, " has a pass"), func() bool {
			mutex.Lock()
			defer mutex.Unlock()
			return taken == changes
		})
	}
}

func TestPassesForWhatIsReadAreAPauseApart(t *testing.T) {
	r, key, start := newReaders(), testKey("c1", "a"), time.Now()
	r.add(key, "1", []engine.Reference{named("net")})
	for _, step := range []struct{ at, want time.Duration }{
		{0, 0},                 // at once
		{300, 700}, {600, 400}, // both have one at 1000
		{1000, 1000}, {1100, 900}, // that one is over: the next is at 2000
		{2999, 1}, {5000, 0}, // and at 3000; then nothing for long
	} {
		at := start.Add(step.at * time.Millisecond)
		if got := r.delay(key, at, time.Second); got != step.want*time.Millisecond {
			t.Errorf("an event at %d ms has its pass after %s, want %d ms", step.at, got, step.want)
		}
	}
}
