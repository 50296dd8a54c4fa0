package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
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
		c.Object = asObject(object)
	}
	return object, err
}
