package engine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
)

// checkCount refuses a node that would give the instance more children than it may have. Nodes before it have theirs:
// which node fails follows from the program's order.
func (p *planner) checkCount(node *NodePlan, objects int) error {
	if node.External {
		return nil
	}
	return overBudget(node, p.limits.Check(budget.Children, len(p.claimed)+objects))
}

// checkSize refuses a child that no API server would store, before it is sent to one, and one for which there is no
// room in the inventory.
func (p *planner) checkSize(node *NodePlan, object *unstructured.Unstructured) error {
	size := JSONSize(object.Object)
	if size > p.limits.Of(budget.ChildBytes) {
		return overBudget(node, p.limits.Exceeded(budget.ChildBytes, fmt.Sprintf("%d for %s", size, object.GetName())))
	}
	p.inventory += rowSize(node, object)
	return overBudget(node, p.limits.Check(budget.InventoryBytes, p.inventory))
}

// rowFields is the size of what a row of the inventory has beside the names: keys, UID, state, policy and wave.
const rowFields = 260

func rowSize(node *NodePlan, object *unstructured.Unstructured) int {
	return rowFields + len(node.ID) + len(node.Target) + len(node.GVK.Group) + len(node.GVK.Version) + len(node.GVK.Kind) +
		len(node.GVR.Resource) + len(object.GetNamespace()) + len(object.GetName())
}

func overBudget(node *NodePlan, err error) error {
	if err == nil {
		return nil
	}
	return &ExpressionError{Node: node.ID, Message: err.Error(), Cause: err}
}
