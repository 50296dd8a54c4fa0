package kro

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// checkRules refuses rules that may take very long on little text.
func (c *compilation) checkRules(schema *apiextensionsv1.JSONSchemaProps) bool {
	fine := true
	for _, written := range schema.XValidations {
		if !c.within(field.NewPath("spec", "schema"), budget.ExpressionBytes, len(written.Rule)) {
			return false
		}
		rule, err := engine.ReadRule(written.Rule)
		if err != nil {
			c.refuse(field.InternalError(field.NewPath("spec", "schema"), err))
			return false
		}
		for _, problem := range ruleProblems(rule) {
			fine = false
			c.refuse(field.Invalid(field.NewPath("spec", "schema"), written.Rule, problem))
		}
	}
	for _, below := range subschemas(schema) {
		fine = c.checkRules(below) && fine
	}
	return fine
}

func ruleProblems(rule engine.Rule) []string {
	var out []string
	if rule.Searches != "" {
		out = append(out, fmt.Sprintf("the regular expression of %s has to be written in the rule as text: how long it takes must be known beforehand", rule.Searches))
	}
	if rule.Quantities && rule.Makes != "" {
		out = append(out, fmt.Sprintf("a rule that reads quantities can't have %q in it: quantities with large exponents take very long, and are found in an instance's values only", rule.Makes))
	}
	return out
}

// statesOfRules are the states of the regular expressions in a schema's own rules.
func statesOfRules(schema *apiextensionsv1.JSONSchemaProps) int {
	total := 0
	for _, written := range schema.XValidations {
		if rule, err := engine.ReadRule(written.Rule); err == nil {
			total = added(total, rule.States)
		}
	}
	return total
}

// subschemas are those directly below.
func subschemas(schema *apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	var out []*apiextensionsv1.JSONSchemaProps
	for name := range schema.Properties {
		below := schema.Properties[name]
		out = append(out, &below)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		out = append(out, schema.AdditionalProperties.Schema)
	}
	return out
}
