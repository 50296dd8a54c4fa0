package kro

import (
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// written finds the regular expressions in a field's markers.
var written = regexp.MustCompile(`pattern=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\s|"]+))`)

// checkWrittenPatterns refuses regular expressions that are too large before kro makes them: it does so when it reads
// the field.
func (c *compilation) checkWrittenPatterns(trees ...any) bool {
	total := 0
	for _, tree := range trees {
		total = added(total, writtenStates(tree))
	}
	return c.within(field.NewPath("spec", "schema"), budget.PatternStates, total)
}

func writtenStates(tree any) int {
	total := 0
	switch v := tree.(type) {
	case map[string]any:
		for _, below := range v {
			total = added(total, writtenStates(below))
		}
	case string:
		for _, match := range written.FindAllStringSubmatch(v, -1) {
			total = added(total, engine.PatternStates(match[1]+match[2]))
		}
	}
	return total
}

// checkPatterns is the same for the schema with all types put in.
func (c *compilation) checkPatterns(schema *apiextensionsv1.JSONSchemaProps) bool {
	return c.within(field.NewPath("spec", "schema"), budget.PatternStates, statesIn(schema))
}

func statesIn(schema *apiextensionsv1.JSONSchemaProps) int {
	total := statesOfRules(schema)
	if schema.Pattern != "" {
		total = added(total, engine.PatternStates(schema.Pattern))
	}
	for _, below := range subschemas(schema) {
		total = added(total, statesIn(below))
	}
	return total
}

// added is the sum, or something larger than maxValue.
func added(a, b int) int { return min(a+b, maxValue+1) }
