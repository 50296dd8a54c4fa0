package kro

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	krolibrary "github.com/kubernetes-sigs/kro/pkg/cel/library"
	"github.com/kubernetes-sigs/kro/pkg/graph/parser"
	kroschema "github.com/kubernetes-sigs/kro/pkg/graph/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// status looks at the author's status fields and conditions.
func (d *diagnosis) status() {
	path := field.NewPath("spec", "schema", "status")
	fields := decoded(d.spec.Schema.Status)
	if conditions, ok := fields["conditions"]; ok {
		d.conditions(path.Child("conditions"), conditions)
		delete(fields, "conditions")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(ownStatus, name) {
			d.statusField(child(path, name), fields[name])
		}
	}
}

const (
	// statusForm and conditionForm are what is expected in the status.
	statusForm    = "expected an expression in ${}, such as ${server.status.phase} where server is the id of a resource"
	conditionForm = `expected an expression in ${} that gives a condition or a list of conditions, such as ` +
		`${runtime.newCondition({type: "Available", status: "True"})}`
)

func (d *diagnosis) statusField(path *field.Path, value any) {
	eachLeaf(path, value, func(path *field.Path, leaf any) {
		if text, ok := leaf.(string); ok {
			d.statusText(path, text)
			return
		}
		d.refuse(field.Invalid(path, leaf, statusForm))
	})
}

func (d *diagnosis) statusText(path *field.Path, text string) {
	const only = "v"
	descriptors, _, err := parser.ParseSchemalessResource(map[string]any{only: text})
	switch {
	case err != nil:
		d.refuse(field.Invalid(path, text, err.Error()))
		return
	case len(descriptors) == 0:
		d.refuse(field.Invalid(path, text, statusForm))
		return
	}
	u := use{path: path, expression: descriptors[0].Expression, env: d.env, role: "status"}
	output, names := d.check(u)
	if output == nil {
		return
	}
	if len(names) == 0 {
		d.refuseUse(u, "expected it to read a resource or schema")
		return
	}
	if _, err := kroschema.GenerateSchemaFromCELTypes(map[string]*cel.Type{only: output}, d.provider); err != nil {
		d.refuseUse(u, "no schema can be made of "+typeName(output)+": "+prettyTypes(err.Error()))
	}
}

func (d *diagnosis) conditions(path *field.Path, value any) {
	list, ok := value.([]any)
	if !ok {
		d.refuse(field.Invalid(path, summary(value), "expected a list; each: "+conditionForm))
		return
	}
	seen := make(map[string]bool)
	for i, element := range list {
		text, ok := element.(string)
		if !ok {
			d.refuse(field.Invalid(path.Index(i), summary(element), conditionForm))
			continue
		}
		d.condition(path.Index(i), text, seen)
	}
}

func (d *diagnosis) condition(path *field.Path, text string, seen map[string]bool) {
	expression := asExpression(text)
	if expression == nil {
		d.refuse(field.Invalid(path, text, conditionForm))
		return
	}
	u := use{path: path, expression: expression, env: d.env, role: "status condition"}
	output, _ := d.check(u)
	if output == nil {
		return
	}
	element, err := krocel.ListElementType(output)
	if err != nil {
		element = output
	}
	if !krolibrary.IsConditionType(element) && element.Kind() != cel.DynKind {
		d.refuseUse(u, "expected runtime.newCondition(…) or a list of them, found "+typeName(output))
	}
	d.conditionLiterals(u)
	for _, name := range conditionTypes(expression.Original) {
		if seen[name] {
			d.refuseUse(u, fmt.Sprintf("condition type %q is given more than once", name))
		}
		seen[name] = true
	}
}
