package blueprint

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Delete refuses while instances exist, unless the blueprint is annotated to be deleted by force.
// What is accepted is unpublished before the answer, if all goes well, and by the loop otherwise.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	work, err := r.begin(ctx, name, dryrun.IsDryRun(options.DryRun))
	if err != nil {
		return nil, false, err
	}
	defer work.unlock()
	reopen := func() {}
	deleted, gone, err := r.Store.Delete(ctx, name, func(ctx context.Context, object runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		if registry.AsObject(object).GetDeletionTimestamp() != nil {
			return nil // it was accepted before
		}
		var err error
		reopen, err = r.refuseInUse(ctx, registry.AsObject(object))
		return err
	}, options)
	if err != nil || work.dryRun {
		reopen()
	}
	if err != nil || gone || work.dryRun {
		return deleted, gone, err
	}
	if err := r.withdraw(ctx, registry.AsObject(deleted)); err != nil {
		return deleted, false, nil // the loop goes on
	}
	return deleted, true, nil
}

// DeleteCollection deletes one by one, as Delete does.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	listed, err := r.Store.List(ctx, listOptions)
	if err != nil {
		return nil, err
	}
	list, ok := listed.(*unstructured.UnstructuredList)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("blueprints are not listed as unstructured"))
	}
	for i := range list.Items {
		if _, _, err := r.Delete(ctx, list.Items[i].GetName(), validate, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return listed, nil
}

// refuseInUse fails if instances exist, and keeps new ones out from now on. The caller lets them in
// again if the blueprint stays.
func (r *REST) refuseInUse(ctx context.Context, object *unstructured.Unstructured) (reopen func(), err error) {
	blueprint, err := decode(object)
	if err != nil {
		return func() {}, apierrors.NewInternalError(err)
	}
	reopen, err = r.offering.CloseGate(ctx, blueprint)
	if err != nil || isForced(blueprint) {
		return reopen, err
	}
	count, err := r.offering.Instances(ctx, blueprint)
	if err != nil {
		return reopen, registry.Unavailable("the instances of the blueprint can't be counted", err)
	}
	if count > 0 {
		return reopen, r.inUse(object, count)
	}
	return reopen, nil
}

func (r *REST) inUse(blueprint *unstructured.Unstructured, count int) error {
	return apierrors.NewConflict(r.DefaultQualifiedResource, blueprint.GetName(), fmt.Errorf(
		"%d instances of it exist; delete them first, or set the annotation %s=true to have them all deleted with it",
		count, v1alpha1.AnnotationForceDelete))
}

// withdraw unpublishes a blueprint that is being deleted, once no instance is left, and lets it go.
func (r *REST) withdraw(ctx context.Context, stored *unstructured.Unstructured) error {
	blueprint, err := decode(stored)
	if err != nil {
		return err
	}
	if err := r.offering.Withdraw(ctx, blueprint); err != nil {
		return err
	}
	return r.records.Finalize(ctx, stored)
}
