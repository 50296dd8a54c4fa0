package gc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// shelf is stored blueprints, with a watch that a test scripts.
type shelf struct{ events chan watch.Event }

func (s *shelf) Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error {
	for {
		select {
		case event := <-s.events:
			object, _ := event.Object.(*unstructured.Unstructured)
			handle(event.Type, object)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *shelf) tell(event watch.EventType, name string) {
	blueprint := &unstructured.Unstructured{Object: map[string]any{}}
	blueprint.SetName(name)
	s.events <- watch.Event{Type: event, Object: blueprint}
}

// startBlueprints runs the loop until the test ends, or stop is called, which returns when Run has.
func startBlueprints(t *testing.T, config BlueprintsConfig) (stored *shelf, stop func()) {
	t.Helper()
	stored = &shelf{events: make(chan watch.Event)}
	config.Stored = stored
	config.KeyOf = func(blueprint *unstructured.Unstructured) v1alpha1.InstanceKey {
		return v1alpha1.InstanceKey{Name: blueprint.GetName()}
	}
	if config.Loaded == nil {
		config.Loaded = func() {}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = NewBlueprints(config).Run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stored, stop
}

// looks counts how often each blueprint was looked at.
type looks struct {
	mutex sync.Mutex
	count map[string]int
	total chan struct{}
}

func newLooks() *looks { return &looks{count: map[string]int{}, total: make(chan struct{}, 1000)} }

func (l *looks) at(name string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count[name]++
	l.total <- struct{}{}
	return l.count[name]
}

func (l *looks) await(t *testing.T, count int) {
	t.Helper()
	for range count {
		select {
		case <-l.total:
		case <-time.After(10 * time.Second):
			t.Fatal("the blueprint was not looked at again")
		}
	}
}

// TestBlueprintIsExpectedWhileOthersAreLookedAt has all workers busy with blueprints that take their time.
func TestBlueprintIsExpectedWhileOthersAreLookedAt(t *testing.T) {
	seen, expected, busy := newLooks(), newLooks(), make(chan struct{})
	shelf, _ := startBlueprints(t, BlueprintsConfig{
		Expect: func(stored *unstructured.Unstructured) { expected.at(stored.GetName()) },
		Ensure: func(_ context.Context, key v1alpha1.InstanceKey) (bool, error) {
			seen.at(key.Name)
			<-busy
			return true, nil
		},
	})
	for i := range blueprintWorkers {
		shelf.tell(watch.Added, fmt.Sprint("slow", i))
	}
	seen.await(t, blueprintWorkers)
	shelf.tell(watch.Added, "widgets")
	expected.await(t, blueprintWorkers+1)
	close(busy)
	seen.await(t, 1)
}

func TestBlueprintThatWasDeletedElsewhereIsLookedAt(t *testing.T) {
	seen := newLooks()
	shelf, _ := startBlueprints(t, BlueprintsConfig{Ensure: func(_ context.Context, key v1alpha1.InstanceKey) (bool, error) {
		return seen.at(key.Name) == 1, nil
	}})
	shelf.tell(watch.Added, "widgets")
	seen.await(t, 1)
	shelf.tell(watch.Deleted, "widgets")
	seen.await(t, 1)
}

func TestBlueprintThatWasDeletedDuringACutOfTheWatchIsLookedAt(t *testing.T) {
	seen := newLooks()
	shelf, _ := startBlueprints(t, BlueprintsConfig{Ensure: func(_ context.Context, key v1alpha1.InstanceKey) (bool, error) {
		seen.at(key.Name)
		return true, nil
	}})
	shelf.tell(watch.Added, "widgets")
	seen.await(t, 1)
	shelf.events <- watch.Event{Type: watch.Bookmark} // a list without it
	seen.await(t, 1)
}

func TestBlueprintsAreLookedAtWithoutAnyEvent(t *testing.T) {
	seen := newLooks()
	shelf, _ := startBlueprints(t, BlueprintsConfig{Resync: 10 * time.Millisecond, Ensure: func(_ context.Context, key v1alpha1.InstanceKey) (bool, error) {
		seen.at(key.Name)
		return true, nil
	}})
	shelf.tell(watch.Added, "widgets")
	seen.await(t, 3)
}

func TestPanicOverOneBlueprintIsRetriedAndLeavesTheOthersAlone(t *testing.T) {
	seen, loaded := newLooks(), make(chan struct{})
	shelf, _ := startBlueprints(t, BlueprintsConfig{Loaded: func() { close(loaded) }, Ensure: func(ctx context.Context, key v1alpha1.InstanceKey) (bool, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("nothing bounds the look at a blueprint")
		}
		if seen.at(key.Name) <= 2 && key.Name == "broken" {
			panic("a compiler's mistake")
		}
		return true, nil
	}})
	shelf.tell(watch.Added, "broken")
	shelf.tell(watch.Added, "sound")
	shelf.events <- watch.Event{Type: watch.Bookmark}
	<-loaded
	seen.await(t, 4) // three times the broken one, once the other
}

func TestRunOfBlueprintsReturnsAfterItsWorkers(t *testing.T) {
	begun, ended := make(chan struct{}), false
	shelf, stop := startBlueprints(t, BlueprintsConfig{Ensure: func(ctx context.Context, _ v1alpha1.InstanceKey) (bool, error) {
		close(begun)
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond) // what it does to end in order
		ended = true
		return true, nil
	}})
	shelf.tell(watch.Added, "widgets")
	<-begun
	stop()
	if !ended {
		t.Error("returned while a worker was at work")
	}
}
