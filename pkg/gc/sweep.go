package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

const (
	// sweepDelay lets strays gather, so that one read of storage serves many. It proves nothing.
	sweepDelay = time.Second
	// sweepRetry is how often strays that could not be decided or deleted are looked at again.
	sweepRetry = time.Minute
)

// sweepForever sweeps when strays turn up, and from time to time while some are left.
func (l *Loop) sweepForever(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.strays.wakeup:
		case <-time.After(sweepRetry):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepDelay):
		}
		l.sweep(ctx)
	}
}

// sweep decides on all strays that are known, household by household. Those that this replica has nothing to do with
// any more are forgotten: a new list finds them if that changes.
func (l *Loop) sweep(ctx context.Context) {
	for home, found := range l.strays.byConsumer() {
		kind := l.kind(home.export)
		if kind == nil || !kind.owns(home.consumer) {
			l.strays.remove(found...)
			continue
		}
		if err := kind.sweep(ctx, home.consumer, found); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "orphans are left for later", "export", home.export.String(), "cluster", home.consumer.String())
		}
	}
	if l.strays.caughtUp() {
		l.listAnew()
	}
}

// listAnew has all children on shared planes told of once more.
func (l *Loop) listAnew() {
	for _, kind := range l.allKinds() {
		kind.children.listAnew()
	}
}

// sweep deletes those of the consumer's strays that are orphans. The read of storage comes after the
// strays were seen, and an instance is stored before its children are written, and until they are
// gone: an instance that isn't there now will not come back for them.
func (s *served) sweep(ctx context.Context, consumer logicalcluster.Name, found []stray) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	_, instances := s.current()
	stored, err := instances.UIDs(ctx, consumer)
	if err != nil {
		return fmt.Errorf("reading instances: %w", err)
	}
	var errs []error
	for _, candidate := range found {
		// The index also knows the instance of a child whose mark of the consumer was tampered with.
		_, indexed := s.index.find(candidate.instance)
		if !indexed && !stored.Has(candidate.instance) {
			if err := s.delete(ctx, candidate); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		s.loop.strays.remove(candidate)
	}
	return errors.Join(errs...)
}

// delete deletes an orphan, if it still is what it was when it was found.
func (s *served) delete(ctx context.Context, orphan stray) error {
	place, err := s.loop.config.Planes.For(ctx, orphan.target, s.export, orphan.consumer)
	if err != nil {
		return err
	}
	live, object, err := plane.Find(ctx, place, orphan.target, orphan.object)
	switch {
	case plane.IsGone(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading orphan on plane %s: %w", orphan.target, err)
	case live.GetUID() != orphan.uid, live.GetDeletionTimestamp() != nil,
		!engine.OwnedBy(live, orphan.instance, orphan.consumer), !s.marked(orphan.target, live), s.keeps(live):
		return nil
	case live.GetCreationTimestamp().Time.Before(s.loop.config.StorageSince):
		klog.FromContext(ctx).Info("a child without instance is older than storage, and is left", "export", s.export.String(),
			"target", orphan.target, "resource", orphan.object.GVR.Resource, "name", orphan.object.Name)
		return nil
	}
	err = place.Delete(ctx, object, orphan.uid)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting orphan on plane %s: %w", orphan.target, err)
	}
	swept.Inc()
	klog.FromContext(ctx).Info("deleted a child without instance", "export", s.export.String(),
		"target", orphan.target, "resource", orphan.object.GVR.Resource, "name", orphan.object.Name,
		"cluster", orphan.consumer.String(), "instance", orphan.instance)
	return nil
}

// keeps says whether a child may have been meant to outlive its instance. Without an inventory the
// program has to say that it was not: a leak can be cleaned up later, a deleted database can't be restored.
func (s *served) keeps(child *unstructured.Unstructured) bool {
	program, _ := s.current()
	for _, node := range program.Nodes {
		if string(node.ID) == child.GetLabels()[v1alpha1.LabelNode] {
			return node.External || node.DeletionPolicy == v1alpha1.DeletionOrphan
		}
	}
	return true
}
