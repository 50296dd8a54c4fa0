package compose

import (
	"context"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Teardown takes the next steps towards deleting all children of an instance that is being deleted:
// wave by wave, from the highest down, each awaited before the next. done says that none is left; then
// nothing is recorded any more, and the finalizer can be taken off the result's instance.
//
// A child of a plane that can't be reached, or where a claim was revoked, stays in the inventory, and
// with it all that it depends on. A caller who knows that a consumer's binding is gone for good takes
// that plane's rows out of the inventory first.
func (c *Composer) Teardown(ctx context.Context, request Request, intent Intent) (done bool, result *Result, err error) {
	composition, err := compositionOf(request.Instance)
	if err != nil {
		return false, nil, err
	}
	rows := named(composition.Resources)
	if request.Instance.GetAnnotations()[v1alpha1.AnnotationOrphanChildren] != "" {
		rows = orphaned(rows)
	}
	left, failure := remover{composer: c, request: request}.waves(ctx, rows, rows, engine.TeardownWave)
	if len(left) == 0 {
		return true, &Result{Instance: request.Instance.DeepCopy()}, nil
	}
	torn := request.Instance.DeepCopy()
	err = c.setStatus(torn, status{
		rows: left, health: engine.SummarizeDeleting(left, failure),
		revision: composition.Revision, generation: composition.ObservedGeneration,
	})
	if err != nil {
		return false, nil, err
	}
	recorded, err := record(ctx, intent, torn)
	if err != nil {
		return false, nil, err
	}
	return false, &Result{Instance: recorded, Err: failure}, nil
}

// orphaned is the rows with the consumer's children all to stay. Who deletes an instance has a say in their own
// workspace only: what stayed on other planes would be nobody's, and in the way of the next instance of that name.
func orphaned(rows []v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	for i := range rows {
		if rows[i].Target == v1alpha1.TargetConsumer {
			rows[i].DeletionPolicy = v1alpha1.DeletionOrphan
		}
	}
	return rows
}

// named is the rows that speak of a child. The others say only what a node waited for.
func named(rows []v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	out := make([]v1alpha1.ComposedResource, 0, len(rows))
	for _, row := range rows {
		if row.Name != "" {
			out = append(out, row)
		}
	}
	return out
}
