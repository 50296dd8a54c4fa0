package kind

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// textTests are what a schema's patterns and rules do to text that takes long: regular expressions, a step for each
// state and character, and quantities. Nothing ends them once they have begun. Nil if the schema has none.
type textTests struct {
	// pattern is how many states the field's own has, and rules those in its rules, which may look at all below.
	pattern, rules int
	quantities     bool
	properties     map[string]*textTests
	elements       *textTests // of a list, or of a map's values
}

func newTextTests(schema *structuralschema.Structural) (*textTests, error) {
	if schema == nil {
		return nil, nil
	}
	tests := &textTests{properties: map[string]*textTests{}}
	if schema.ValueValidation != nil && schema.ValueValidation.Pattern != "" {
		tests.pattern = engine.PatternStates(schema.ValueValidation.Pattern)
	}
	for _, written := range schema.XValidations {
		rule, err := engine.ReadRule(written.Rule)
		if err != nil {
			return nil, err
		}
		tests.rules += rule.States
		tests.quantities = tests.quantities || rule.Quantities
	}
	return tests.withBelow(schema)
}

func (t *textTests) withBelow(schema *structuralschema.Structural) (*textTests, error) {
	for name := range schema.Properties {
		property := schema.Properties[name]
		below, err := newTextTests(&property)
		if err != nil {
			return nil, err
		}
		if below != nil {
			t.properties[name] = below
		}
	}
	elements := schema.Items
	if schema.AdditionalProperties != nil {
		elements = schema.AdditionalProperties.Structural
	}
	var err error
	if t.elements, err = newTextTests(elements); err != nil {
		return nil, err
	}
	if t.pattern+t.rules+len(t.properties) == 0 && !t.quantities && t.elements == nil {
		return nil, nil
	}
	return t, nil
}

// check refuses an object whose tests would take too long.
func (t *textTests) check(object map[string]any) field.ErrorList {
	if t == nil {
		return nil
	}
	if err := (budget.Limits{}).Check(budget.PatternSteps, t.steps(object)); err != nil {
		return field.ErrorList{field.Forbidden(field.NewPath("spec"), err.Error())}
	}
	return t.largeQuantities(nil, object)
}

// steps is how many steps the regular expressions may take.
func (t *textTests) steps(value any) int {
	if t == nil {
		return 0
	}
	total := 0
	if t.rules > 0 {
		total = t.rules * engine.JSONSize(value)
	}
	switch v := value.(type) {
	case string:
		total += t.pattern * len(v)
	case map[string]any:
		for name, below := range v {
			total += t.below(name).steps(below)
		}
	case []any:
		for _, element := range v {
			total += t.elements.steps(element)
		}
	}
	return total
}

func (t *textTests) below(name string) *textTests {
	if below := t.properties[name]; below != nil {
		return below
	}
	return t.elements
}

// largeQuantities refuses texts that a rule may read as a quantity with so large an exponent that it would take hours.
func (t *textTests) largeQuantities(path *field.Path, value any) field.ErrorList {
	switch {
	case t == nil:
		return nil
	case t.quantities:
		return exponents(path, value)
	}
	var problems field.ErrorList
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			problems = append(problems, t.below(name).largeQuantities(path.Child(name), below)...)
		}
	case []any:
		for i, element := range v {
			problems = append(problems, t.elements.largeQuantities(path.Index(i), element)...)
		}
	}
	return problems
}

func exponents(path *field.Path, value any) field.ErrorList {
	var problems field.ErrorList
	switch v := value.(type) {
	case string:
		if engine.HasLargeExponent(v) {
			problems = append(problems, field.Invalid(path, v, "a rule of the kind reads quantities, whose exponents may have three digits"))
		}
	case map[string]any:
		for name, below := range v {
			problems = append(problems, exponents(path.Child(name), name)...)
			problems = append(problems, exponents(path.Child(name), below)...)
		}
	case []any:
		for i, element := range v {
			problems = append(problems, exponents(path.Index(i), element)...)
		}
	}
	return problems
}
