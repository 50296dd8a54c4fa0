package kind

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
)

// checkDepth refuses what is nested too deeply, before anything walks it that takes the product of size and depth.
// Bodies in JSON are looked at while they are read; this is for YAML, and for what patches make.
func checkDepth(object *unstructured.Unstructured) error {
	most := budget.Depth.Default
	if depth(object.Object, most) <= most {
		return nil
	}
	return budget.Limits{}.More(budget.Depth)
}

// depth is how deeply the value is nested, or something more than most.
func depth(value any, most int) int {
	if most < 0 {
		return 1
	}
	below := 0
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			below = max(below, depth(element, most-1))
		}
	case []any:
		for _, element := range v {
			below = max(below, depth(element, most-1))
		}
	default:
		return 0
	}
	return 1 + below
}
