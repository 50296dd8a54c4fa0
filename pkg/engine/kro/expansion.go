package kro

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
)

// checkExpansion refuses a schema that is too large, before it is made: a dozen types that name each other
// eight times make billions of fields.
func (c *compilation) checkExpansion() bool {
	if c.spec.Schema == nil {
		return true
	}
	var fields, types map[string]any
	if json.Unmarshal(c.spec.Schema.Spec.Raw, &fields) != nil {
		fields = nil // said elsewhere
	}
	if json.Unmarshal(c.spec.Schema.Types.Raw, &types) != nil {
		types = nil
	}
	if !c.checkWrittenPatterns(fields, types) {
		return false
	}
	e := expansion{types: types, most: c.limits.Of(budget.SchemaFields), sizes: map[string]int{}}
	if e.size(fields) <= e.most {
		return true
	}
	c.refuse(field.Forbidden(field.NewPath("spec", "schema", "spec"), c.limits.More(budget.SchemaFields).Error()))
	return false
}

// expansion counts the fields of a schema without making it.
type expansion struct {
	types map[string]any
	most  int
	// sizes of types that were counted. One that is being counted has none: types that are made of each
	// other in a circle are refused elsewhere.
	sizes map[string]int
}

// size is how many fields there are at and below the tree, or more than most.
func (e *expansion) size(tree any) int {
	size := 1
	if object, ok := tree.(map[string]any); ok {
		for _, below := range object {
			if size += e.size(below); size > e.most {
				return e.most + 1
			}
		}
		return size
	}
	for _, name := range typesIn(tree) {
		if size += e.sizeOfType(name); size > e.most {
			return e.most + 1
		}
	}
	return size
}

func (e *expansion) sizeOfType(name string) int {
	if size, counted := e.sizes[name]; counted {
		return size
	}
	e.sizes[name] = 0
	e.sizes[name] = e.size(e.types[name])
	return e.sizes[name]
}
