package blueprint

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Delete refuses while instances exist, unless the blueprint is annotated to be deleted by force.
// What is accepted is unpublished before the answer, if all goes well, and by the loop otherwise.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	work, err := r.begin(ctx, name, isDryRun(options.DryRun))
	if err != nil {
		return nil, false, err
	}
	defer work.unlock()
	deleted, gone, err := r.Store.Delete(ctx, name, r.refuseInUse(validate), options)
	if err != nil || gone || work.dryRun {
		return deleted, gone, err
	}
	if err := r.withdraw(ctx, asObject(deleted)); err != nil {
		return deleted, false, nil // the loop goes on
	}
	return deleted, true, nil
}

// DeleteCollection refuses as Delete does, for each.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.Store.DeleteCollection(ctx, r.refuseInUse(validate), options, listOptions)
}

// refuseInUse adds to a validation that no instance may exist.
func (r *REST) refuseInUse(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		blueprint := asObject(object)
		if blueprint.GetAnnotations()[v1alpha1.AnnotationForceDelete] == "true" {
			return nil
		}
		count, err := r.offering.Instances(ctx, exportOf(blueprint))
		if err != nil {
			return registry.Unavailable("the instances of the blueprint can't be counted", err)
		}
		if count > 0 {
			return r.inUse(blueprint, count)
		}
		return nil
	}
}

func (r *REST) inUse(blueprint *unstructured.Unstructured, count int) error {
	return apierrors.NewConflict(r.DefaultQualifiedResource, blueprint.GetName(), fmt.Errorf(
		"%d instances of it exist; delete them first, or set the annotation %s=true to have them all deleted with it",
		count, v1alpha1.AnnotationForceDelete))
}

// withdraw unpublishes a blueprint that is being deleted, once no instance is left, and lets it go.
func (r *REST) withdraw(ctx context.Context, blueprint *unstructured.Unstructured) error {
	if export := exportOf(blueprint); export.Name != "" {
		if err := r.offering.Withdraw(ctx, export); err != nil {
			return err
		}
	}
	return r.records.Finalize(ctx, blueprint)
}
