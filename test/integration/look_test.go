package integration

import (
	"encoding/base64"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

const mergePatch = types.MergePatchType

// nodeSelector selects the children of an instance, all of them or those of one node.
func nodeSelector(instance *unstructured.Unstructured, node string) metav1.ListOptions {
	selector := v1alpha1.LabelInstanceUID + "=" + string(instance.GetUID())
	if node != "" {
		selector += "," + v1alpha1.LabelNode + "=" + node
	}
	return metav1.ListOptions{LabelSelector: selector}
}

// children are an instance's children of a resource, of one node or (with "") of all.
func (a actor) children(resource schema.GroupVersionResource, instance *unstructured.Unstructured, node string) ([]unstructured.Unstructured, error) {
	list, err := a.in(resource).List(a.t.Context(), nodeSelector(instance, node))
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// child is the one child of a node. It must be there.
func (a actor) child(resource schema.GroupVersionResource, instance *unstructured.Unstructured, node string) *unstructured.Unstructured {
	a.t.Helper()
	found, err := a.children(resource, instance, node)
	must(a.t, err)
	if len(found) != 1 {
		a.t.Fatalf("%s has %d children of node %s, want 1", a.user, len(found), node)
	}
	return &found[0]
}

// has says what is wrong unless a field has a value. No value wants the field to be absent.
func (a actor) has(resource schema.GroupVersionResource, name string, want any, path ...string) error {
	object, err := a.in(resource).Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return fieldIs(object, want, path...)
}

// fieldIs says what is wrong unless a field of an object has a value.
func fieldIs(object *unstructured.Unstructured, want any, path ...string) error {
	got, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		return err
	}
	if want == nil && !found {
		return nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s %s: %v is %v, want %v", object.GetKind(), object.GetName(), path, got, want)
	}
	return nil
}

// missing says what is wrong unless an object is not there.
func (a actor) missing(resource schema.GroupVersionResource, name string) error {
	object, err := a.in(resource).Get(a.t.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%s %s of %s is there (deleted at %v, finalizers %v)",
			resource.Resource, name, a.user, object.GetDeletionTimestamp(), object.GetFinalizers())
	}
}

// nothingOf says what is left of an instance on the planes of its consumer and of the provider.
func nothingOf(instance *unstructured.Unstructured, planes ...actor) error {
	for _, plane := range planes {
		for _, resource := range []schema.GroupVersionResource{configMaps, secrets} {
			found, err := plane.Resource(resource).List(plane.t.Context(), nodeSelector(instance, ""))
			if err != nil {
				return err
			}
			if len(found.Items) > 0 {
				return fmt.Errorf("%s still has %s %s of %s", plane.user, resource.Resource, found.Items[0].GetName(), instance.GetName())
			}
		}
	}
	return nil
}

// conditionIs says what is wrong unless a condition has a status.
func conditionIs(object *unstructured.Unstructured, kind, want string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, entry := range conditions {
		if c, _ := entry.(map[string]any); c["type"] == kind {
			if c["status"] == want {
				return nil
			}
			return fmt.Errorf("%s of %s is %v (%v: %v), want %s", kind, object.GetName(), c["status"], c["reason"], c["message"], want)
		}
	}
	return fmt.Errorf("%s has no condition %s", object.GetName(), kind)
}

// row is what an instance's status says of a node's first child.
func row(instance *unstructured.Unstructured, node string) map[string]any {
	rows, _, _ := unstructured.NestedSlice(instance.Object, "status", "composition", "resources")
	for _, entry := range rows {
		if r, _ := entry.(map[string]any); r["id"] == node {
			return r
		}
	}
	return nil
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
