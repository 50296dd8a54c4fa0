package story

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/test/testbed"
)

const (
	// settleTimeout is many times what the loop takes for anything on a busy machine.
	settleTimeout = 30 * time.Second
	settlePoll    = 50 * time.Millisecond
)

// all checks everything, and tells of all that does not hold.
func all(checks ...Check) Check {
	return func(ctx context.Context, scene *Scene) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(ctx, scene))
		}
		return errors.Join(errs...)
	}
}

// soon waits for something that the loop does after the answer.
func soon(check Check) Check {
	return func(ctx context.Context, scene *Scene) error {
		var last error
		err := wait.PollUntilContextTimeout(ctx, settlePoll, settleTimeout, true, func(ctx context.Context) (bool, error) {
			last = check(ctx, scene)
			return last == nil, nil
		})
		return errors.Join(err, last)
	}
}

// field checks one field of an object.
func field(as testbed.User, resource schema.GroupVersionResource, name string, want any, path ...string) Check {
	return func(ctx context.Context, scene *Scene) error {
		object, err := scene.get(ctx, as, resource, name)
		if err != nil {
			return err
		}
		got, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err != nil {
			return fmt.Errorf("%s %s: %w", resource.Resource, name, err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s %s: %v is %v, want %v", resource.Resource, name, path, got, want)
		}
		return nil
	}
}

// secret checks one value of a Secret.
func secret(as testbed.User, name, key, want string) Check {
	return field(as, Secrets, name, base64.StdEncoding.EncodeToString([]byte(want)), "data", key)
}

// exist checks that objects are there.
func exist(as testbed.User, resource schema.GroupVersionResource, names ...string) Check {
	return func(ctx context.Context, scene *Scene) error {
		for _, name := range names {
			if _, err := scene.get(ctx, as, resource, name); err != nil {
				return fmt.Errorf("%s %s: %w", resource.Resource, name, err)
			}
		}
		return nil
	}
}

// gone checks that objects are not there.
func gone(as testbed.User, resource schema.GroupVersionResource, names ...string) Check {
	return func(ctx context.Context, scene *Scene) error {
		for _, name := range names {
			_, err := scene.get(ctx, as, resource, name)
			if err == nil {
				return fmt.Errorf("%s %s of %s is still there", resource.Resource, name, as)
			}
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s %s: %w", resource.Resource, name, err)
			}
		}
		return nil
	}
}

// count checks how many objects there are that krop has composed.
func count(as testbed.User, resource schema.GroupVersionResource, want int) Check {
	return func(ctx context.Context, scene *Scene) error {
		objects, err := scene.list(ctx, as, resource)
		if err != nil {
			return err
		}
		composed := 0
		for _, object := range objects.Items {
			if _, ok := object.GetLabels()[v1alpha1.LabelInstanceUID]; ok || resource == Databases {
				composed++
			}
		}
		if composed != want {
			return fmt.Errorf("%s has %d %s, want %d", as, composed, resource.Resource, want)
		}
		return nil
	}
}

// condition checks the status of a condition.
func condition(as testbed.User, resource schema.GroupVersionResource, name, kind, want string) Check {
	return func(ctx context.Context, scene *Scene) error {
		object, err := scene.get(ctx, as, resource, name)
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, entry := range conditions {
			if c := entry.(map[string]any); c["type"] == kind {
				if c["status"] != want {
					return fmt.Errorf("%s %s: %s is %v (%v), want %s", resource.Resource, name, kind, c["status"], c["message"], want)
				}
				return nil
			}
		}
		return fmt.Errorf("%s %s has no condition %s", resource.Resource, name, kind)
	}
}

// child checks the row of a child in the status of a database.
func child(as testbed.User, instance, node, want, waitingFor string) Check {
	return rowOf(as, Databases, instance, node, want, waitingFor)
}

// rowOf checks the row of a child in the status of an instance.
func rowOf(as testbed.User, resource schema.GroupVersionResource, instance, node, want, waitingFor string) Check {
	return func(ctx context.Context, scene *Scene) error {
		object, err := scene.get(ctx, as, resource, instance)
		if err != nil {
			return err
		}
		rows, _, err := unstructured.NestedSlice(object.Object, "status", "composition", "resources")
		if err != nil {
			return err
		}
		for _, entry := range rows {
			row := entry.(map[string]any)
			if row["id"] != node {
				continue
			}
			if waits, _ := row["waitingFor"].(string); row["state"] != want || waits != waitingFor {
				return fmt.Errorf("%s of %s is %v (waits for %q), want %s (%q)", node, instance, row["state"], waits, want, waitingFor)
			}
			return nil
		}
		return fmt.Errorf("%s has no row for %s", instance, node)
	}
}

// refused checks the answer itself, which kubectl only shows as text: the same object is sent once more.
func refused(as testbed.User, resource schema.GroupVersionResource, file string, code int32, fields ...string) Check {
	return func(ctx context.Context, scene *Scene) error {
		data, err := os.ReadFile(filepath.Join(scene.checkout, file))
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &object.Object); err != nil {
			return err
		}
		_, err = scene.client(as, resource).Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return fmt.Errorf("create %s: %v, want a status with code %d", file, err, code)
		}
		if status.Status().Code != code {
			return fmt.Errorf("create %s: code %d, want %d: %w", file, status.Status().Code, code, err)
		}
		return causes(status.Status(), fields)
	}
}

// causes checks that each field is named by a cause.
func causes(status metav1.Status, fields []string) error {
	named := map[string]bool{}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			named[cause.Field] = true
		}
	}
	for _, field := range fields {
		if !named[field] {
			return fmt.Errorf("no cause names %s: %v", field, status.Details)
		}
	}
	return nil
}
