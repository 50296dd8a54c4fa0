package gc

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

const (
	// blueprintWorkers is how many blueprints are compiled at a time. It is CPU work, and rare.
	blueprintWorkers = 2
	// blueprintRetryBase and blueprintRetryMax bound the pause before a blueprint that could not be
	// compiled, published or withdrawn is tried again.
	blueprintRetryBase = 200 * time.Millisecond
	blueprintRetryMax  = 30 * time.Second
	// ensureTimeout bounds one look at a blueprint, so that a workspace that hangs can't keep a worker from
	// the blueprints of others. Building storage may take 30 s of it.
	ensureTimeout = time.Minute
)

// StoredBlueprints is the stored blueprints of all providers. pkg/registry implements it.
type StoredBlueprints interface {
	// Watch is that of Instances.
	Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error
}

// Blueprints keeps what is served and published in step with the blueprints that are stored: at
// start, after another replica has written or deleted one, where a request had to leave something undone,
// and now and then.
type Blueprints struct {
	config BlueprintsConfig
	queue  workqueue.TypedRateLimitingInterface[v1alpha1.InstanceKey]

	mutex    sync.Mutex
	known    sets.Set[v1alpha1.InstanceKey]     // those that were seen, and not found missing since
	changing map[v1alpha1.InstanceKey]time.Time // since when a kind that they use may be changing
}

// BlueprintsConfig is what the loop over blueprints is made from.
type BlueprintsConfig struct {
	// Stored is what is watched.
	Stored StoredBlueprints
	// KeyOf names a stored blueprint.
	KeyOf func(*unstructured.Unstructured) v1alpha1.InstanceKey
	// Expect is told of every blueprint that is stored, as it is stored, before it waits for its turn; nil if nobody is to be told.
	Expect func(*unstructured.Unstructured)
	// Ensure brings one blueprint to what is stored, and says whether it is. An error is worth a retry.
	Ensure func(ctx context.Context, key v1alpha1.InstanceKey) (exists bool, err error)
	// Loaded is called once, when every blueprint that was stored at start has been tried.
	Loaded func()
	// Kinds are followed where there are blueprints; nil to leave changes of kinds to the resync.
	Kinds *Kinds
	// Uses says whether a blueprint may be another one after a change of the group's kinds on a plane; of all groups,
	// if it is empty.
	Uses func(key v1alpha1.InstanceKey, target v1alpha1.Target, group string) bool
	// Resync is how often a blueprint is looked at without any event, since somebody may change what was
	// published without krop's hearing of it; DefaultResync if zero.
	Resync time.Duration
}

// NewBlueprints makes the loop over blueprints. Run starts it.
func NewBlueprints(config BlueprintsConfig) *Blueprints {
	if config.Resync == 0 {
		config.Resync = DefaultResync
	}
	return &Blueprints{config: config, known: sets.New[v1alpha1.InstanceKey](), changing: map[v1alpha1.InstanceKey]time.Time{}, queue: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[v1alpha1.InstanceKey](blueprintRetryBase, blueprintRetryMax),
		workqueue.TypedRateLimitingQueueConfig[v1alpha1.InstanceKey]{Name: "blueprints"})}
}

// Enqueue has a blueprint looked at, because something other than the blueprint has changed.
func (b *Blueprints) Enqueue(key v1alpha1.InstanceKey) { b.queue.Add(key) }

// Run works until ctx ends, and returns when its workers have ended. It runs once.
func (b *Blueprints) Run(ctx context.Context) error {
	start := &firstPass{missing: map[v1alpha1.InstanceKey]struct{}{}, done: b.config.Loaded}
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	for range blueprintWorkers {
		workers.Go(func() { b.work(ctx, start) })
	}
	defer workers.Wait()
	defer b.queue.ShutDown()
	defer cancel()
	b.follow(ctx, kindPlane{target: v1alpha1.TargetHost})
	return b.config.Stored.Watch(ctx, func(event watch.EventType, blueprint *unstructured.Unstructured) {
		switch event {
		case watch.Bookmark:
			start.complete()
			b.enqueueKnown() // after a cut, some of them may have gone unheard of
		case watch.Added, watch.Modified:
			key := b.config.KeyOf(blueprint)
			start.expect(key)
			if b.config.Expect != nil {
				b.config.Expect(blueprint)
			}
			b.meet(ctx, key)
			b.queue.Add(key)
		case watch.Deleted:
			b.queue.Add(b.config.KeyOf(blueprint))
		}
	})
}

func (b *Blueprints) work(ctx context.Context, start *firstPass) {
	for {
		key, stopped := b.queue.Get()
		if stopped {
			return
		}
		exists, err := b.ensure(ctx, key)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			klog.FromContext(ctx).Info("blueprint is not as stored yet", "cluster", key.Cluster, "blueprint", key.Name, "err", err)
			b.queue.AddRateLimited(key)
			b.lookAgain(key)
		case exists:
			b.meet(ctx, key) // made anew while its deletion was looked at, it was forgotten after its event
			b.queue.Forget(key)
			b.queue.AddAfter(key, wait.Jitter(b.config.Resync, delayJitter))
			b.lookAgain(key)
		default:
			b.queue.Forget(key)
			b.forget(key)
		}
		start.tried(key)
		b.queue.Done(key)
	}
}

// ensure is bounded. A panic is one blueprint's failure: those of other providers go on.
func (b *Blueprints) ensure(ctx context.Context, key v1alpha1.InstanceKey) (exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, ensureTimeout)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			exists, err = true, fmt.Errorf("panic: %v", panicked)
			klog.FromContext(ctx).Error(err, "blueprint panicked", "cluster", key.Cluster, "blueprint", key.Name, "stack", string(debug.Stack()))
		}
	}()
	return b.config.Ensure(ctx, key)
}

// meet remembers a blueprint, and follows the kinds of its workspace.
func (b *Blueprints) meet(ctx context.Context, key v1alpha1.InstanceKey) {
	b.mutex.Lock()
	b.known.Insert(key)
	b.mutex.Unlock()
	b.follow(ctx, workspaceOf(key))
}

func (b *Blueprints) forget(key v1alpha1.InstanceKey) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.known.Delete(key)
	delete(b.changing, key)
	for other := range b.known {
		if other.Cluster == key.Cluster {
			return
		}
	}
	if b.config.Kinds != nil {
		b.config.Kinds.unfollow(workspaceOf(key))
	}
}

func (b *Blueprints) enqueueKnown() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for key := range b.known {
		b.queue.Add(key)
	}
}
