package gc

import (
	"context"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// releaseNested deletes those of the instance's children in the consumer's workspace that are instances themselves, and
// says whether some are still there. It is for an instance whose consumer has unbound: kcp's garbage collector
// removes children whose owner's kind is gone, but never sees the kinds that krop serves. What can be reached no
// longer through claims is deleted where it is stored; what it is composed of goes with it, as in any deletion.
func (p *pass) releaseNested(ctx context.Context, instance *unstructured.Unstructured) (left bool, err error) {
	for _, row := range inventory(instance) {
		if row.Target != v1alpha1.TargetConsumer || row.UID == "" || row.DeletionPolicy == v1alpha1.DeletionOrphan {
			continue
		}
		there, err := p.kind.loop.releaseChild(ctx, p.key.Cluster, instance.GetUID(), row)
		if err != nil {
			return false, fmt.Errorf("deleting nested instance %s: %w", row.Name, err)
		}
		left = left || there
	}
	return left, nil
}

// releaseChild deletes the instance that a row speaks of, if krop serves it, and says whether it is still there.
// Which export the kind is of isn't asked: the recorded UID tells.
func (l *Loop) releaseChild(ctx context.Context, consumer logicalcluster.Name, parent types.UID, row v1alpha1.ComposedResource) (there bool, err error) {
	for _, kind := range l.allKinds() {
		program, instances := kind.current()
		if program.Resource() != row.GVR().GroupResource() {
			continue
		}
		key := v1alpha1.InstanceKey{Export: kind.export, Cluster: consumer, Namespace: row.Namespace, Name: row.Name}
		child, err := instances.Get(ctx, key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !engine.Recorded(row, child) || engine.MarkedByOther(child, parent, consumer) {
			continue
		}
		if child.GetDeletionTimestamp() == nil {
			err := instances.DeleteExactly(ctx, key, row.UID)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// nestedGone makes the instance due that one which is gone was a child of. Where the parent's consumer has unbound, the
// parent hears of it in no other way.
func (l *Loop) nestedGone(child *unstructured.Unstructured) {
	parent := types.UID(child.GetLabels()[v1alpha1.LabelInstanceUID])
	if parent == "" {
		return
	}
	for _, kind := range l.allKinds() {
		if key, ok := kind.index.find(parent); ok {
			l.enqueue(key, forced)
			return
		}
	}
}

// bindingOfChildren makes instances due that have children of the export's kind: a binding that comes or goes lets
// these be reached, or not any more.
func (l *Loop) bindingOfChildren(export v1alpha1.ExportKey, consumer logicalcluster.Name) {
	for _, kind := range l.allKinds() {
		if program, _ := kind.current(); program.Composes(export) {
			kind.enqueueAllIn(consumer, forced)
		}
	}
}
