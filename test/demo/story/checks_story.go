package story

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/test/testbed"
)

// managedBy checks that a field manager owns a field of spec.
func managedBy(as testbed.User, instance, manager, name string) Check {
	return func(ctx context.Context, scene *Scene) error {
		object, err := scene.get(ctx, as, Databases, instance)
		if err != nil {
			return err
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == manager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+name+`"`) {
				return nil
			}
		}
		return fmt.Errorf("%s does not own %s of %s", manager, name, instance)
	}
}

// differentUIDs checks that two consumers' objects of one name are two objects.
func differentUIDs(name string) Check {
	return func(ctx context.Context, scene *Scene) error {
		var objects [2]*unstructured.Unstructured
		for i, as := range []testbed.User{consumer, consumer2} {
			var err error
			if objects[i], err = scene.get(ctx, as, Databases, name); err != nil {
				return err
			}
		}
		if objects[0].GetUID() == objects[1].GetUID() {
			return fmt.Errorf("both consumers see the same %s", name)
		}
		return nil
	}
}
