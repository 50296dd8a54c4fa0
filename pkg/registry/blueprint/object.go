package blueprint

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// decode reads a stored blueprint.
func decode(object *unstructured.Unstructured) (*v1alpha1.ResourceGraphDefinition, error) {
	blueprint := &v1alpha1.ResourceGraphDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, blueprint); err != nil {
		return nil, fmt.Errorf("blueprint %q: %w", object.GetName(), err)
	}
	return blueprint, nil
}

// withStatus returns a copy of the object with the status that set makes of the present one.
func withStatus(object *unstructured.Unstructured, set func(*v1alpha1.ResourceGraphDefinitionStatus)) (*unstructured.Unstructured, error) {
	blueprint, err := decode(object)
	if err != nil {
		return nil, err
	}
	status := blueprint.Status.DeepCopy()
	set(status)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("status of blueprint %q: %w", object.GetName(), err)
	}
	changed := object.DeepCopy()
	changed.Object["status"] = fields
	return changed, nil
}

// condition is one condition of a blueprint.
func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}
