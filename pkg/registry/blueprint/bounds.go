package blueprint

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/registry"
)

// checkBounds refuses a blueprint that is too large, and one more than the workspace may have.
func (w *write) checkBounds(object, old *unstructured.Unstructured) error {
	limits := w.rest.compiler.Limits
	if err := registry.CheckSize(limits, budget.BlueprintBytes, object); err != nil || old != nil {
		return err
	}
	return registry.Refused(limits.Check(budget.Blueprints, w.rest.offering.Catalog.CountOf(w.key.Cluster)+1))
}
