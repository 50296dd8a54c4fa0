package gc

import (
	"context"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// relabelPause gathers what start brings: each export tells that its bindings are known, one shortly after the other.
const relabelPause = time.Second

// relabels are the consumers whose instances may lack a label of a claim that was accepted, or have one of a
// claim that isn't any more. Looking at an instance costs a read of the watch cache.
type relabels struct {
	workqueue.TypedRateLimitingInterface[household]
}

func newRelabels() relabels {
	return relabels{workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[household](retryFirst, retryMost),
		workqueue.TypedRateLimitingQueueConfig[household]{Name: "gc-labels"})}
}

// ClaimsChanged says that the claims which a cluster accepts, of whatever export, may have changed. All
// kinds that have instances there are looked at: which of them a claim is about doesn't matter, since what has the right
// labels isn't written.
func (l *Loop) ClaimsChanged(cluster logicalcluster.Name) {
	for _, kind := range l.allKinds() {
		if len(kind.index.uidsIn(cluster)) > 0 {
			l.relabels.Add(household{kind.export, cluster})
		}
	}
}

// ClaimsKnown says that it is known by now which claims of an export are accepted where. A label of a claim that was
// revoked while nobody watched can be taken off from now on.
func (l *Loop) ClaimsKnown() {
	for _, kind := range l.allKinds() {
		kind.relabelAll(relabelPause)
	}
}

// relabelAll has all instances of the kind looked at.
func (s *served) relabelAll(after time.Duration) {
	for _, cluster := range s.index.clusters() {
		s.loop.relabels.AddAfter(household{s.export, cluster}, after)
	}
}

// relabelForever works until the queue is shut down.
func (l *Loop) relabelForever(ctx context.Context) {
	for {
		home, shutdown := l.relabels.Get()
		if shutdown {
			return
		}
		if l.relabel(ctx, home) {
			l.relabels.Forget(home)
		} else {
			l.relabels.AddRateLimited(home)
		}
		l.relabels.Done(home)
	}
}

// relabel looks at all instances of a household. done is false if some have to be looked at again.
func (l *Loop) relabel(ctx context.Context, home household) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	kind := l.kind(home.export)
	if kind == nil || !kind.owns(home.consumer) {
		return true
	}
	done = true
	_, instances := kind.current()
	for _, key := range kind.index.keysIn(home.consumer) {
		if err := l.relabelOne(ctx, instances, key); err != nil {
			klog.FromContext(ctx).V(2).Info("labels of claims are not up to date", "instance", key.String(), "err", err)
			done = false
		}
	}
	return done
}

// relabelOne writes an instance that hasn't the labels it should have. It takes the instance's lock, so that no request
// meanwhile finds its version gone; and the event of the write is an echo, if there is nothing else to be done.
func (l *Loop) relabelOne(ctx context.Context, instances Instances, key v1alpha1.InstanceKey) error {
	if labelled, err := instances.Labelled(ctx, key); labelled || err != nil {
		return err
	}
	unlock, err := lock(ctx, instances, key)
	if err != nil {
		return err
	}
	defer unlock()
	before, after, err := instances.Relabel(ctx, key)
	if err != nil || before == nil {
		return err
	}
	if l.seen.covers(key, versionOf(before)) {
		l.seen.add(key, versionOf(after))
	}
	return nil
}
