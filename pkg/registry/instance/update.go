package instance

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/registry"
)

// Update serves PUT and every kind of PATCH, and the create that a server-side apply of a new object is.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	work, err := r.begin(ctx, name, isDryRun(options.DryRun))
	if err != nil {
		return nil, false, err
	}
	defer work.end()

	captured := &registry.CapturedInfo{UpdatedObjectInfo: info}
	stored, created, err := r.Store.Update(ctx, name, captured,
		func(ctx context.Context, copied runtime.Object) error {
			if createValidation != nil {
				if err := createValidation(ctx, copied); err != nil {
					return err
				}
			}
			return work.admitNew(ctx, captured.Object)
		},
		func(ctx context.Context, copied, old runtime.Object) error {
			if updateValidation != nil {
				if err := updateValidation(ctx, copied, old); err != nil {
					return err
				}
			}
			return work.admitChanged(ctx, captured.Object, asInstance(old))
		},
		forceAllowCreate, options)
	if err != nil {
		return nil, false, err
	}
	if asInstance(stored).GetDeletionTimestamp() != nil {
		return stored, created, nil
	}
	answer, err := work.carryOn(ctx, asInstance(stored))
	return answer, created, err
}
