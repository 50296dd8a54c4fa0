package instance

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

// Delete asks for the instance's deletion: its finalizer holds it until its children are gone, whatever
// the propagation policy. Only Orphan differs: the consumer's own children stay.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, marking(validate, orphans(options)), options)
}

// marking records on an instance whether the consumer's children are to stay. The store writes the very object that
// it has validated, with the time of deletion: both are stored at once, or neither is. What the first
// deletion said stays, unless a later one says Orphan.
func marking(validate rest.ValidateObjectFunc, orphan bool) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if err := validate(ctx, object); err != nil {
			return err
		}
		instance, ok := object.(*unstructured.Unstructured)
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("an instance is not expected as %T", object))
		}
		annotations := instance.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		switch {
		case orphan:
			annotations[v1alpha1.AnnotationOrphanChildren] = "true"
		case instance.GetDeletionTimestamp() == nil:
			delete(annotations, v1alpha1.AnnotationOrphanChildren)
		}
		instance.SetAnnotations(annotations)
		return nil
	}
}

// orphans says whether children are to stay, in the new words or the old.
func orphans(options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	if options.PropagationPolicy != nil {
		return *options.PropagationPolicy == metav1.DeletePropagationOrphan
	}
	return options.OrphanDependents != nil && *options.OrphanDependents //lint:ignore SA1019 old clients still send it
}

// DeleteCollection is also the first that krop hears of a namespace that is being deleted: from now
// on, the namespace may not take instances any more.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	key, err := registry.KeyIn(ctx, r.program.Load().Export, "")
	if err != nil {
		return nil, err
	}
	r.config.Namespaces.Forget(key.Export, key.Cluster, key.Namespace)
	return r.Store.DeleteCollection(ctx, marking(validate, orphans(options)), options, listOptions)
}
