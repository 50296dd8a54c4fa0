package registry

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// Labelled says whether an object has the labels of claims that it should have, as far as the watch cache knows
// it. One that is gone has them.
func (r *Records) Labelled(ctx context.Context, key v1alpha1.InstanceKey) (bool, error) {
	object, err := r.store.Main.Get(inCluster(ctx, key.Cluster, key.Namespace), key.Name, &metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	labels := AsObject(object).GetLabels()
	return maps.Equal(labels, r.store.Labels(key.Cluster, labels)), nil
}

// Relabel stores an object with the labels that every write puts on it, and changes nothing else. It returns the
// object as it was and as it is; nil if it is gone.
func (r *Records) Relabel(ctx context.Context, key v1alpha1.InstanceKey) (before, after *unstructured.Unstructured, err error) {
	ctx = kind.WithInternal(inCluster(ctx, key.Cluster, key.Namespace))
	unchanged := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		before = AsObject(stored).DeepCopy()
		return before.DeepCopy(), nil
	})
	written, _, err := r.store.Main.Update(ctx, key.Name, unchanged,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return before, AsObject(written), nil
}
