package gc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// definitions are the watches of what defines kinds, handed over to a test.
type definitions struct {
	denied  error
	watches chan *definitionsWatch
}

type definitionsWatch struct {
	at     kindPlane
	handle func(watch.EventType, *unstructured.Unstructured)
	ended  <-chan struct{}
}

func (d *definitions) WatchAll(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, _ schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error {
	d.watches <- &definitionsWatch{kindPlane{target, export.Cluster}, handle, ctx.Done()}
	<-ctx.Done()
	return nil
}

func (d *definitions) Denied(_ context.Context, _ v1alpha1.Target, _ v1alpha1.ExportKey, rights []plane.Right) ([]plane.Right, error) {
	if d.denied != nil {
		return nil, d.denied
	}
	return nil, nil
}

func (w *definitionsWatch) tell(event watch.EventType, name string) {
	definition := &unstructured.Unstructured{Object: map[string]any{}}
	definition.SetName(name)
	w.handle(event, definition)
}

func (w *definitionsWatch) synced() { w.handle(watch.Bookmark, nil) }

// following is a loop over one blueprint, and the watch of its workspace's definitions, which has listed what is there.
func following(t *testing.T, uses string, target v1alpha1.Target) (*Kinds, *looks, *shelf, *definitionsWatch) {
	t.Helper()
	sources := &definitions{watches: make(chan *definitionsWatch, 2)}
	kinds := NewKinds(sources, map[v1alpha1.Target][]schema.GroupVersionResource{target: {CustomResourceDefinitions}})
	seen := newLooks()
	shelf, _ := startBlueprints(t, BlueprintsConfig{
		Kinds: kinds,
		Uses: func(_ v1alpha1.InstanceKey, on v1alpha1.Target, group string) bool {
			return on == target && (group == uses || group == "")
		},
		Ensure: func(_ context.Context, key v1alpha1.InstanceKey) (bool, error) { return seen.at(key.Name) < 1000, nil },
	})
	shelf.tell(watch.Added, "widgets")
	seen.await(t, 1)
	watch := <-sources.watches
	watch.tell("ADDED", "gadgets.example.org")
	watch.synced()
	seen.await(t, 1) // what changed before the watch began
	return kinds, seen, shelf, watch
}

func TestChangedKindHasItsBlueprintsLookedAtUntilItHasSettled(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.TargetProvider, v1alpha1.TargetHost} {
		t.Run(string(target), func(t *testing.T) {
			kinds, seen, _, source := following(t, "example.org", target)
			used := engine.UsedKinds{{Target: target, GVK: schema.GroupVersionKind{Group: "example.org"}}}
			if _, recently := kinds.Changed("", used); recently {
				t.Error("what was there from the start is called a change")
			}
			source.tell(watch.Modified, "gadgets.example.org")
			seen.await(t, 4) // at once, and again and again
			if _, recently := kinds.Changed("", used); !recently {
				t.Error("the change is not remembered")
			}
			for _, other := range []engine.UsedKind{{Target: target, GVK: schema.GroupVersionKind{Group: "other.org"}}, {Target: "nowhere", GVK: used[0].GVK}} {
				if _, recently := kinds.Changed("", engine.UsedKinds{other}); recently {
					t.Errorf("%v is called changed", other)
				}
			}
		})
	}
}

func TestChangeOfAKindThatNobodyUsesIsLeftAlone(t *testing.T) {
	_, seen, _, source := following(t, "example.org", v1alpha1.TargetProvider)
	source.tell(watch.Deleted, "gadgets.other.org")
	source.tell(watch.Deleted, "gadgets.example.org")
	seen.await(t, 1)
	if count := seen.at("widgets"); count != 4 { // this one included
		t.Errorf("looked at %d times, want 3", count-1)
	}
}

func TestWorkspaceWithoutBlueprintsIsNotFollowed(t *testing.T) {
	kinds, seen, shelf, source := following(t, "", v1alpha1.TargetProvider)
	seen.mutex.Lock()
	seen.count["widgets"] = 1000 // it is gone at the next look
	seen.mutex.Unlock()
	shelf.tell(watch.Deleted, "widgets")
	select {
	case <-source.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the watch goes on")
	}
	kinds.mutex.Lock()
	defer kinds.mutex.Unlock()
	if _, followed := kinds.follows[source.at]; followed {
		t.Error("it couldn't be followed anew")
	}
}

func TestBlueprintThatIsMadeAnewWhileItsDeletionIsLookedAtIsFollowed(t *testing.T) {
	sources := &definitions{watches: make(chan *definitionsWatch, 3)}
	looking, made := make(chan struct{}), make(chan struct{})
	seen := newLooks()
	shelf, _ := startBlueprints(t, BlueprintsConfig{
		Kinds: NewKinds(sources, map[v1alpha1.Target][]schema.GroupVersionResource{v1alpha1.TargetProvider: {CustomResourceDefinitions}}),
		Uses:  func(v1alpha1.InstanceKey, v1alpha1.Target, string) bool { return true },
		Ensure: func(_ context.Context, key v1alpha1.InstanceKey) (bool, error) {
			if seen.at(key.Name) != 2 {
				return true, nil
			}
			close(looking)
			<-made
			return false, nil // as it was when it was read
		},
	})
	shelf.tell(watch.Added, "widgets")
	seen.await(t, 1)
	first := <-sources.watches
	shelf.tell(watch.Deleted, "widgets")
	<-looking
	shelf.tell(watch.Added, "widgets")
	shelf.tell(watch.Error, "") // means nothing, and is taken once the one before has been taken up
	close(made)
	<-first.ended
	select {
	case again := <-sources.watches:
		seen.await(t, 2) // that it was gone, and that it is there
		again.synced()
		seen.await(t, 1)
	case <-time.After(10 * time.Second):
		t.Fatal("the workspace of the new one is not followed")
	}
}

// TestKindsThatMayNotBeWatchedAreAskedFor is of a provider who has applied the manifests of an earlier release.
func TestKindsThatMayNotBeWatchedAreAskedFor(t *testing.T) {
	sources := &definitions{watches: make(chan *definitionsWatch, 1), denied: errors.New("away")}
	kinds := NewKinds(sources, map[v1alpha1.Target][]schema.GroupVersionResource{v1alpha1.TargetProvider: {CustomResourceDefinitions}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if kinds.awaitRights(ctx, kindPlane{v1alpha1.TargetProvider, logicalcluster.Name("w")}, CustomResourceDefinitions) {
		t.Error("watched without being allowed to")
	}
	sources.denied = nil
	if !kinds.awaitRights(t.Context(), kindPlane{v1alpha1.TargetProvider, logicalcluster.Name("w")}, CustomResourceDefinitions) {
		t.Error("not watched although it is allowed")
	}
}
