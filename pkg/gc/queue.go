package gc

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// queueName is the value of the label "name" of the workqueue metrics: one for all tenants.
const queueName = "gc"

// queue is the keys that are due, each with its reasons. Safe for concurrent use.
type queue struct {
	workqueue.TypedDelayingInterface[v1alpha1.InstanceKey]

	order    *lanes
	due      *due
	failures workqueue.TypedRateLimiter[v1alpha1.InstanceKey]
	rechecks workqueue.TypedRateLimiter[v1alpha1.InstanceKey]
}

// newQueue makes a queue that calls taken for each key that a worker gets, before it is seen to have one less. It
// has no limit over all keys: a burst is worked off as fast as there are workers for its tenant, and only
// keys that fail are slowed down, each by itself.
func newQueue(taken func()) *queue {
	reasons := newDue()
	most := shares{
		cluster: budget.Passes.Default, clusterInBackground: budget.BackgroundPasses.Default,
		exportInBackground: budget.BackgroundPassesPerExport.Default,
	}
	order := newLanes(most, reasons.urgent, taken)
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[v1alpha1.InstanceKey]{
		Name:  queueName,
		Queue: order,
	})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[v1alpha1.InstanceKey]{
		Name:  queueName,
		Queue: ordered,
	})
	return &queue{
		TypedDelayingInterface: delaying,
		order:                  order,
		due:                    reasons,
		failures:               workqueue.NewTypedItemExponentialFailureRateLimiter[v1alpha1.InstanceKey](retryFirst, retryMost),
		rechecks:               workqueue.NewTypedItemExponentialFailureRateLimiter[v1alpha1.InstanceKey](recheckFirst, recheckMost),
	}
}

// Get waits for a key.
func (q *queue) Get() (key v1alpha1.InstanceKey, shutdown bool) {
	for {
		key, shutdown = q.TypedDelayingInterface.Get()
		if shutdown || key != nudge {
			return key, shutdown
		}
		q.TypedDelayingInterface.Done(nudge)
	}
}

// Done says that the worker is done with a key, so that another one may have its place.
func (q *queue) Done(key v1alpha1.InstanceKey) {
	forTwo := q.order.left(key)
	q.TypedDelayingInterface.Done(key)
	if forTwo {
		q.Add(nudge)
	}
}

// now makes the key due.
func (q *queue) now(key v1alpha1.InstanceKey, why reason) {
	q.due.add(key, why)
	q.Add(key)
	if q.order.hasMoved() {
		q.Add(nudge)
	}
}

// after makes the key due after a delay, or with its next event if that comes first.
func (q *queue) after(key v1alpha1.InstanceKey, why reason, delay time.Duration) {
	q.due.add(key, why)
	q.AddAfter(key, delay)
}

// retry makes a key due whose pass failed.
func (q *queue) retry(key v1alpha1.InstanceKey) {
	q.after(key, routine, wait.Jitter(q.failures.When(key), delayJitter))
}

// recheck makes a key due whose teardown waits for children.
func (q *queue) recheck(key v1alpha1.InstanceKey) {
	q.failures.Forget(key)
	q.after(key, routine, wait.Jitter(q.rechecks.When(key), delayJitter))
}

// settled ends all backoff of the key.
func (q *queue) settled(key v1alpha1.InstanceKey) {
	q.failures.Forget(key)
	q.rechecks.Forget(key)
}
