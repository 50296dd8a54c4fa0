package instance

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"go.opendefense.cloud/krop/pkg/registry"
)

// Update serves PUT and every kind of PATCH, and the create that a server-side apply of a new object is.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	work, err := r.begin(ctx, name, dryrun.IsDryRun(options.DryRun))
	if err != nil {
		return nil, false, err
	}
	defer work.end()

	captured := &registry.CapturedInfo{UpdatedObjectInfo: info}
	stored, created, err := r.Store.Update(ctx, name, captured,
		registry.AdmitCreate(createValidation, func(ctx context.Context) error { return work.admitNew(ctx, captured.Object) }),
		registry.AdmitUpdate(updateValidation, func(ctx context.Context, old *unstructured.Unstructured) error {
			return work.admitChanged(ctx, captured.Object, old)
		}),
		forceAllowCreate, options)
	if err != nil {
		return nil, false, err
	}
	if registry.AsObject(stored).GetDeletionTimestamp() != nil {
		return stored, created, nil
	}
	answer, err := work.carryOn(ctx, registry.AsObject(stored))
	return answer, created, err
}
