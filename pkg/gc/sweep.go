package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	// maxStrays bounds what is remembered, at some 500 bytes each. For those beyond it, the planes are listed anew
	// when there is room again.
	maxStrays = 10000
)

// stray is a child on a shared plane whose instance isn't in the index. That proves nothing yet.
type stray struct {
	export   v1alpha1.ExportKey
	target   v1alpha1.Target
	object   plane.Object
	uid      types.UID
	instance types.UID
	consumer logicalcluster.Name
}

// strays are to be swept, or found to be nobody's orphans. Safe for concurrent use.
type strays struct {
	owns   func(logicalcluster.Name) bool
	most   int
	wakeup chan struct{}

	mutex  sync.Mutex
	found  map[stray]struct{}
	missed bool // some could not be remembered
}

func newStrays(owns func(logicalcluster.Name) bool) *strays {
	return &strays{owns: owns, most: maxStrays, found: map[stray]struct{}{}, wakeup: make(chan struct{}, 1)}
}

// add remembers a stray. One of another replica's consumer is left to that replica, and found again by a new
// list of its plane if the consumer comes to this one.
func (s *strays) add(found stray) {
	if found.target == v1alpha1.TargetConsumer || !s.owns(found.consumer) { // with a consumer, its own children go
		return
	}
	s.mutex.Lock()
	if len(s.found) >= s.most {
		maps.DeleteFunc(s.found, func(old stray, _ struct{}) bool { return !s.owns(old.consumer) })
	}
	if len(s.found) < s.most {
		s.found[found] = struct{}{}
	} else {
		s.missed = true
	}
	s.mutex.Unlock()
	s.again()
}

// caughtUp says, once, that strays which could not be remembered can be by now.
func (s *strays) caughtUp() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.missed || len(s.found) > s.most/2 {
		return false
	}
	s.missed = false
	return true
}

// again asks for a sweep.
func (s *strays) again() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

func (s *strays) remove(found ...stray) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, each := range found {
		delete(s.found, each)
	}
}

// byConsumer groups what there is by what one read of storage can decide.
func (s *strays) byConsumer() map[household][]stray {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	groups := map[household][]stray{}
	for found := range s.found {
		h := household{found.export, found.consumer}
		groups[h] = append(groups[h], found)
	}
	return groups
}

// strayOf reads a child's marks. complete is false unless they say beyond doubt that krop wrote it
// for an instance of this export.
func (s *served) strayOf(of source, child *unstructured.Unstructured) (found stray, complete bool) {
	if of.target == v1alpha1.TargetConsumer || !s.marked(of.target, child) {
		return stray{}, false
	}
	labels := child.GetLabels()
	return stray{
		export:   s.export,
		target:   of.target,
		object:   plane.Object{GVR: of.gvr, Namespace: child.GetNamespace(), Name: child.GetName()},
		uid:      child.GetUID(),
		instance: types.UID(labels[v1alpha1.LabelInstanceUID]),
		consumer: logicalcluster.Name(labels[v1alpha1.LabelConsumerCluster]),
	}, true
}

func strayOfRow(export v1alpha1.ExportKey, instance *unstructured.Unstructured, row v1alpha1.ComposedResource) stray {
	return stray{
		export:   export,
		target:   row.Target,
		object:   plane.Object{GVR: row.GVR(), Namespace: row.Namespace, Name: row.Name},
		uid:      row.UID,
		instance: instance.GetUID(),
		consumer: logicalcluster.From(instance),
	}
}

// marked says whether a child has all marks, and was written by the instance that they name: a
// copy that somebody made of a child has its labels, but not its field manager. The host is shared by
// all providers, and maybe by several krops, so there the marks of both count too: clusters of two kcps
// may have one name.
func (s *served) marked(target v1alpha1.Target, child *unstructured.Unstructured) bool {
	labels := child.GetLabels()
	for _, mark := range []string{v1alpha1.LabelInstanceUID, v1alpha1.LabelConsumerCluster, v1alpha1.LabelBlueprint, v1alpha1.LabelNode} {
		if labels[mark] == "" {
			return false
		}
	}
	if target == v1alpha1.TargetHost && (labels[v1alpha1.LabelProviderCluster] != s.export.Cluster.String() ||
		labels[v1alpha1.LabelInstallation] != s.loop.config.Installation) {
		return false
	}
	managers := writers(child)
	return len(managers) == 1 && string(managers[0]) == labels[v1alpha1.LabelInstanceUID]
}

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
		if !l.config.MaySweep() {
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
