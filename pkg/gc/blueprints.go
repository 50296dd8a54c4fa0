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
	// Stored is what is watched.
	Stored StoredBlueprints
	// KeyOf names a stored blueprint.
	KeyOf func(*unstructured.Unstructured) v1alpha1.InstanceKey
	// Ensure brings one blueprint to what is stored. An error is worth a retry.
	Ensure func(ctx context.Context, key v1alpha1.InstanceKey) error
	// Loaded is called once, when every blueprint that was stored at start has been tried.
	Loaded func()
}

// Run works until ctx ends.
func (b *Blueprints) Run(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[v1alpha1.InstanceKey](blueprintRetryBase, blueprintRetryMax),
		workqueue.TypedRateLimitingQueueConfig[v1alpha1.InstanceKey]{Name: "blueprints"})
	defer queue.ShutDown()
	start := &firstPass{missing: map[v1alpha1.InstanceKey]struct{}{}, done: b.Loaded}
	for range blueprintWorkers {
		go b.work(ctx, queue, start)
	}
	return b.Stored.Watch(ctx, func(event watch.EventType, blueprint *unstructured.Unstructured) {
		switch event {
		case watch.Bookmark:
			start.complete()
		case watch.Added, watch.Modified:
			key := b.KeyOf(blueprint)
			start.expect(key)
			queue.Add(key)
		}
	})
}

func (b *Blueprints) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[v1alpha1.InstanceKey], start *firstPass) {
	for {
		key, stopped := queue.Get()
		if stopped {
			return
		}
		if err := b.Ensure(ctx, key); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("blueprint is not as stored yet", "cluster", key.Cluster, "blueprint", key.Name, "err", err)
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		start.tried(key)
		queue.Done(key)
	}
}
