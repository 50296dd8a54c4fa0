package kro

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// forEach checks the axes, and gives the environment in which their variables have types.
func (d *diagnosis) forEach(r *resource) (*cel.Env, []string) {
	var variables []cel.EnvOption
	var names []string
	for _, axis := range r.ForEach {
		names = append(names, slices.Sorted(maps.Keys(axis))...)
	}
	for i, axis := range r.ForEach {
		for _, name := range slices.Sorted(maps.Keys(axis)) {
			if !d.canBeVariable(name) {
				continue
			}
			element := d.axis(r, r.path.Child("forEach").Index(i).Child(name), axis[name], names)
			variables = append(variables, cel.Variable(name, element))
		}
	}
	env, err := d.env.Extend(variables...)
	if err != nil {
		return d.env, names
	}
	return env, names
}

func (d *diagnosis) canBeVariable(name string) bool {
	return lowerCamel.MatchString(name) && !reservedNames.Has(name) && d.byID[name] == nil
}

// axis is the type of a forEach variable, dyn if its expression has errors.
func (d *diagnosis) axis(r *resource, path *field.Path, text string, siblings []string) *cel.Type {
	expression, ok := d.unwrap(r, path, "forEach", text)
	if !ok {
		return cel.DynType
	}
	u := use{resource: r, path: path, expression: expression, env: d.env, role: "forEach", siblings: siblings}
	output, _ := d.check(u)
	if output == nil {
		return cel.DynType
	}
	element, err := krocel.ListElementType(output)
	if err != nil && output.Kind() != cel.DynKind {
		d.refuseUse(u, "expected a list, found "+typeName(output))
	}
	if element == nil {
		return cel.DynType
	}
	return element
}

// unusedAxes refuses axes that no object is named after.
func (d *diagnosis) unusedAxes(r *resource, used map[string]bool) {
	for i, axis := range r.ForEach {
		for name := range axis {
			if !used[name] && d.canBeVariable(name) {
				d.refuse(field.Invalid(r.path.Child("forEach").Index(i).Child(name), name, d.about(r, "forEach",
					"expected the variable in metadata.name or metadata.namespace, without it the objects would have the same name")))
			}
		}
	}
}
