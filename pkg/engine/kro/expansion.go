package kro

import (
	"encoding/json"
	"strings"

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
	return c.checkExtent(newExpansion(types).whole(fields))
}

// checkExtent refuses a schema that would take too long to be checked.
func (c *compilation) checkExtent(whole extent) bool {
	at := field.NewPath("spec", "schema", "spec")
	for _, bounded := range []struct {
		bound *budget.Bound
		asked int
	}{
		{budget.SchemaFields, whole.fields}, {budget.SchemaBytes, whole.bytes}, {budget.SchemaRules, whole.rules}, {budget.Depth, whole.depth},
	} {
		if bounded.asked > c.limits.Of(bounded.bound) {
			c.refuse(field.Forbidden(at, c.limits.More(bounded.bound).Error()))
			return false
		}
	}
	return true
}

// extent is how large a schema is that has all types put in.
type extent struct{ fields, bytes, rules, depth int }

// with adds what is so many levels below.
func (x extent) with(below extent, levels int) extent {
	return extent{
		fields: added(x.fields, below.fields),
		bytes:  added(x.bytes, below.bytes),
		rules:  added(x.rules, below.rules),
		depth:  max(x.depth, below.depth+levels),
	}
}

// expansion measures a schema without making it.
type expansion struct {
	types map[string]any
	// extents of types that were measured. One that is being measured has none: types that are made of each
	// other in a circle are refused elsewhere.
	extents map[string]extent
	// named are the types that others are made of.
	named map[string]bool
}

func newExpansion(types map[string]any) *expansion {
	e := &expansion{types: types, extents: map[string]extent{}, named: map[string]bool{}}
	for _, tree := range types {
		collectTypes(tree, e.named)
	}
	return e
}

// whole is the extent of the fields, and of types that nothing is made of, which are checked too.
func (e *expansion) whole(fields map[string]any) extent {
	collectTypes(fields, e.named)
	all := e.of(fields)
	for name := range e.types {
		if !e.named[name] {
			all = all.with(e.ofType(name), 1)
		}
	}
	return all
}

// of is the extent of the tree and all below.
func (e *expansion) of(tree any) extent {
	all := extent{fields: 1}
	switch v := tree.(type) {
	case map[string]any:
		for name, below := range v {
			all.bytes = added(all.bytes, len(name))
			all = all.with(e.of(below), 1)
		}
	case string:
		all.bytes, all.rules = len(v), rulesIn(v)
		for _, name := range typesIn(v) {
			all = all.with(e.ofType(name), 0) // an alias, or a list
		}
	}
	return all
}

// ruleBytes is how long a rule may be to count for one.
const ruleBytes = 256

// rulesIn is how many rules the field's markers are worth.
func rulesIn(text string) int {
	count := strings.Count(text, "validation=")
	if count == 0 {
		return 0
	}
	return max(count, len(text)/ruleBytes)
}

func (e *expansion) ofType(name string) extent {
	known, measured := e.extents[name]
	if measured {
		return known
	}
	e.extents[name] = extent{}
	e.extents[name] = e.of(e.types[name])
	return e.extents[name]
}
