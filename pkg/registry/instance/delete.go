package instance

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// Delete asks for the instance's deletion: its finalizer holds it until its children are gone, whatever
// the propagation policy. Only Orphan differs: the children stay.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if !orphans(options) || isDryRun(options.DryRun) {
		return r.Store.Delete(ctx, name, validate, options)
	}
	work, err := r.begin(ctx, name, false)
	if err != nil {
		return nil, false, err
	}
	defer work.end()
	marked, err := r.markOrphans(ctx, name, validate, options.Preconditions)
	if err != nil {
		return nil, false, err
	}
	asked := options.DeepCopy()
	asked.Preconditions = metav1.NewUIDPreconditions(string(marked.GetUID())) // the mark has changed its version
	return r.Store.Delete(ctx, name, validate, asked)
}

// markOrphans records on the instance, before it is deleted, that its children are to stay.
func (r *REST) markOrphans(ctx context.Context, name string, validate rest.ValidateObjectFunc, preconditions *metav1.Preconditions) (*unstructured.Unstructured, error) {
	object, err := r.Store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	instance := asInstance(object).DeepCopy()
	if err := validate(ctx, instance.DeepCopy()); err != nil {
		return nil, err
	}
	if err := r.refuseOther(instance, preconditions); err != nil {
		return nil, err
	}
	annotations := instance.GetAnnotations()
	annotations[v1alpha1.AnnotationOrphanChildren] = "true"
	instance.SetAnnotations(annotations)
	updated, _, err := r.Store.Update(kind.WithInternal(ctx), name, rest.DefaultUpdatedObjectInfo(instance),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return asInstance(updated), err
}

// refuseOther fails unless the instance is the one that the preconditions speak of.
func (r *REST) refuseOther(instance *unstructured.Unstructured, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	if preconditions.UID != nil && *preconditions.UID != instance.GetUID() ||
		preconditions.ResourceVersion != nil && *preconditions.ResourceVersion != instance.GetResourceVersion() {
		return apierrors.NewConflict(r.DefaultQualifiedResource, instance.GetName(), errors.New("the preconditions of the deletion do not hold"))
	}
	return nil
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
	if orphans(options) {
		return r.deleteEach(ctx, validate, options, listOptions)
	}
	return r.Store.DeleteCollection(ctx, validate, options, listOptions)
}

// deleteEach deletes one by one, since the store's own DeleteCollection would not mark orphans.
func (r *REST) deleteEach(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	listed, err := r.Store.List(ctx, listOptions)
	if err != nil {
		return nil, err
	}
	list, ok := listed.(*unstructured.UnstructuredList)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("instances are not listed as unstructured"))
	}
	for i := range list.Items {
		if _, _, err := r.Delete(ctx, list.Items[i].GetName(), validate, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return listed, nil
}
