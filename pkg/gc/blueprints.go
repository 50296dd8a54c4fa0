package gc

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
)

// StoredBlueprints is the stored blueprints of all providers. pkg/registry implements it.
type StoredBlueprints interface {
	// Watch is that of Instances.
	Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error
}

// Blueprints keeps what is served and published in step with the blueprints that are stored: at
// start, after another replica has written one, and where a request had to leave something undone.
type Blueprints struct {
	config BlueprintsConfig
	queue  workqueue.TypedRateLimitingInterface[v1alpha1.InstanceKey]
}

// BlueprintsConfig is what the loop over blueprints is made from.
type BlueprintsConfig struct {
	// Stored is what is watched.
	Stored StoredBlueprints
	// KeyOf names a stored blueprint.
	KeyOf func(*unstructured.Unstructured) v1alpha1.InstanceKey
	// Ensure brings one blueprint to what is stored. An error is worth a retry.
	Ensure func(ctx context.Context, key v1alpha1.InstanceKey) error
	// Loaded is called once, when every blueprint that was stored at start has been tried.
	Loaded func()
}

// NewBlueprints makes the loop over blueprints. Run starts it.
func NewBlueprints(config BlueprintsConfig) *Blueprints {
	return &Blueprints{config: config, queue: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[v1alpha1.InstanceKey](blueprintRetryBase, blueprintRetryMax),
		workqueue.TypedRateLimitingQueueConfig[v1alpha1.InstanceKey]{Name: "blueprints"})}
}

// Enqueue has a blueprint looked at, because something other than the blueprint has changed.
func (b *Blueprints) Enqueue(key v1alpha1.InstanceKey) { b.queue.Add(key) }

// Run works until ctx ends. It runs once.
func (b *Blueprints) Run(ctx context.Context) error {
	defer b.queue.ShutDown()
	start := &firstPass{missing: map[v1alpha1.InstanceKey]struct{}{}, done: b.config.Loaded}
	for range blueprintWorkers {
		go b.work(ctx, start)
	}
	return b.config.Stored.Watch(ctx, func(event watch.EventType, blueprint *unstructured.Unstructured) {
		switch event {
		case watch.Bookmark:
			start.complete()
		case watch.Added, watch.Modified:
			key := b.config.KeyOf(blueprint)
			start.expect(key)
			b.queue.Add(key)
		}
	})
}

func (b *Blueprints) work(ctx context.Context, start *firstPass) {
	for {
		key, stopped := b.queue.Get()
		if stopped {
			return
		}
		if err := b.config.Ensure(ctx, key); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("blueprint is not as stored yet", "cluster", key.Cluster, "blueprint", key.Name, "err", err)
			b.queue.AddRateLimited(key)
		} else {
			b.queue.Forget(key)
		}
		start.tried(key)
		b.queue.Done(key)
	}
}
