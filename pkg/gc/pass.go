package gc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// work takes up keys until the queue is shut down.
func (l *Loop) work(ctx context.Context) {
	for {
		key, shutdown := l.queue.Get()
		if shutdown {
			return
		}
		l.progressed()
		l.takeUp(ctx, key)
		l.queue.Done(key)
		l.progressed()
		l.busy.Add(-1)
	}
}

// takeUp sees whether an instance still needs a pass, and makes it.
func (l *Loop) takeUp(ctx context.Context, key v1alpha1.InstanceKey) {
	why, ok := l.queue.due.take(key)
	kind := l.kind(key.Export)
	if kind == nil || !kind.owns(key.Cluster) {
		l.queue.settled(key)
		return
	}
	if !ok || ctx.Err() != nil {
		return // an earlier pass has taken the reasons along
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	program, instances := kind.current()
	unlock, err := lock(ctx, instances, key)
	if err != nil {
		l.queue.after(key, why, lockRetry)
		observe(resultLocked, began)
		return
	}
	defer unlock()
	if l.isEcho(key, why) {
		observe(resultEcho, began)
		return
	}
	p := &pass{kind: kind, program: program, instances: instances, key: key}
	ended, err := p.run(ctx)
	l.settle(ctx, key, ended, err)
	observe(ended, began)
}

// lock gives up early: whoever has the lock may be a request that waits for a slow plane.
func lock(ctx context.Context, instances Instances, key v1alpha1.InstanceKey) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return instances.Lock(ctx, key)
}

// isEcho says whether everything that made an instance due was taken into account meanwhile.
func (l *Loop) isEcho(key v1alpha1.InstanceKey, why reason) bool {
	if why.forced {
		return false
	}
	for _, change := range why.changes {
		if !l.seen.covers(key, change) {
			return false
		}
	}
	return true
}

// settle decides when the instance is next looked at without an event.
func (l *Loop) settle(ctx context.Context, key v1alpha1.InstanceKey, ended result, err error) {
	switch {
	case err != nil:
		l.queue.retry(key)
		klog.FromContext(ctx).V(2).Info("pass failed", "instance", key.String(), "err", err)
	case ended == resultWaiting:
		l.queue.recheck(key)
	default:
		l.queue.settled(key)
	}
}

// pass is one look at an instance, under its lock. It keeps the program that it began with.
type pass struct {
	kind      *served
	program   *engine.Program
	instances Instances
	key       v1alpha1.InstanceKey
}

// run starts over at once, from fresh reads, when somebody else has written meanwhile. A panic is
// one instance's failure: the others, and other tenants, go on.
func (p *pass) run(ctx context.Context) (ended result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			ended, err = resultFailed, fmt.Errorf("panic: %v", panicked)
			klog.FromContext(ctx).Error(err, "pass panicked", "instance", p.key.String(), "stack", string(debug.Stack()))
		}
	}()
	for range maxConflicts {
		ended, err = p.attempt(ctx)
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return resultFailed, err
	}
	return ended, nil
}

func (p *pass) attempt(ctx context.Context) (result, error) {
	instance, err := p.instances.Get(ctx, p.key)
	if apierrors.IsNotFound(err) {
		p.kind.forgetKey(p.key)
		return resultGone, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the instance: %w", err)
	}
	p.kind.put(instance)
	switch {
	case instance.GetDeletionTimestamp() != nil:
		p.kind.externals.readers.remove(p.key, instance.GetUID()) // nothing that it reads matters any more
		return p.teardown(ctx, instance)
	case p.kind.unbound.has(instance.GetUID()):
		return p.reclaim(ctx)
	default:
		return p.compose(ctx, instance)
	}
}

// compose brings the children to what the instance says, and prunes those that it doesn't want any more.
func (p *pass) compose(ctx context.Context, instance *unstructured.Unstructured) (result, error) {
	composer := p.kind.loop.config.Composer
	applied, err := composer.Apply(ctx, p.request(instance), p.instances)
	if err != nil {
		return "", err
	}
	p.kind.externals.settled(p.key, instance.GetUID(), applied.Plan)
	pruned, err := composer.Prune(ctx, p.request(applied.Instance), applied.Plan, p.instances)
	if err != nil {
		return "", err
	}
	p.kind.put(pruned.Instance)
	if err := errors.Join(applied.Err, pruned.Err); err != nil {
		return "", err
	}
	p.kind.loop.seen.composed(p.key, applied)
	p.kind.loop.seen.composed(p.key, pruned)
	if hasDeleting(composition(pruned.Instance)) {
		return resultWaiting, nil
	}
	return resultSynced, nil
}

// teardown takes the next steps of a deletion, and lets the instance go when no child is left.
// Where the binding is gone, the consumer's workspace can't be reached any more: those children are the
// consumer's to keep, and aren't waited for. Only instances among them are krop's: they go first.
func (p *pass) teardown(ctx context.Context, instance *unstructured.Unstructured) (result, error) {
	if !slices.Contains(instance.GetFinalizers(), v1alpha1.Finalizer) {
		return resultFinished, nil // somebody else's finalizer holds it
	}
	if p.kind.unbound.has(instance.GetUID()) {
		left, err := p.releaseNested(ctx, instance)
		if err != nil {
			return "", err
		}
		if left {
			return resultWaiting, nil
		}
		if instance, err = p.dropConsumerRows(ctx, instance); err != nil {
			return "", err
		}
	}
	done, torn, err := p.kind.loop.config.Composer.Teardown(ctx, p.request(instance), p.instances)
	if err != nil {
		return "", err
	}
	if !done {
		p.kind.put(torn.Instance)
		p.kind.loop.seen.add(p.key, versionOf(torn.Instance))
		return resultWaiting, torn.Err
	}
	if err := p.instances.Finalize(ctx, torn.Instance); err != nil {
		return "", fmt.Errorf("letting the instance go: %w", err)
	}
	return resultFinished, nil
}

func (p *pass) dropConsumerRows(ctx context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	reachable, changed := withoutTarget(instance, v1alpha1.TargetConsumer)
	if !changed {
		return instance, nil
	}
	return p.instances.Record(ctx, reachable)
}

// reclaim begins to delete an instance whose consumer has unbound. The decision is stored before
// anything is deleted, so that neither a crash nor a new binding leaves half an instance.
func (p *pass) reclaim(ctx context.Context) (result, error) {
	if err := p.instances.Delete(ctx, p.key); err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reclaiming the instance: %w", err)
	}
	instance, err := p.instances.Get(ctx, p.key)
	if apierrors.IsNotFound(err) {
		return resultGone, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the instance: %w", err)
	}
	return p.teardown(ctx, instance)
}

func (p *pass) request(instance *unstructured.Unstructured) compose.Request {
	return compose.Request{
		Program: p.program, Consumer: p.key.Cluster, Instance: instance,
		Reads: func(references []engine.Reference) { p.kind.externals.reads(p.key, instance.GetUID(), references) },
	}
}
