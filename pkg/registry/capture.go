package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/budget"
)

// CapturedInfo remembers the object that the generic store is about to write. The store hands copies
// to validators, but writes this object itself, so that what composing puts into it is stored (a test
// of pkg/registry/kind pins that).
type CapturedInfo struct {
	rest.UpdatedObjectInfo
	Object *unstructured.Unstructured
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (c *CapturedInfo) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	object, err := c.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err == nil {
		c.Object = AsObject(object)
	}
	return object, err
}

// AdmitCreate is a create's validation by the server, followed by admit. Admit works on the object that is
// about to be stored, not on the validators' copy.
func AdmitCreate(validate rest.ValidateObjectFunc, admit func(context.Context) error) rest.ValidateObjectFunc {
	return func(ctx context.Context, copied runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, copied); err != nil {
				return err
			}
		}
		budget.LeaveSeat(ctx)
		return admit(ctx)
	}
}

// AdmitUpdate is AdmitCreate for updates; admit also gets the object that is stored.
func AdmitUpdate(validate rest.ValidateObjectUpdateFunc, admit func(ctx context.Context, old *unstructured.Unstructured) error) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, copied, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, copied, old); err != nil {
				return err
			}
		}
		budget.LeaveSeat(ctx)
		return admit(ctx, AsObject(old))
	}
}
