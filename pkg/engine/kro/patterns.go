package kro

import (
	"regexp"
	"regexp/syntax"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
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
			total = added(total, states(match[1]+match[2]))
		}
	}
	return total
}

// checkPatterns is the same for the schema with all types put in.
func (c *compilation) checkPatterns(schema *apiextensionsv1.JSONSchemaProps) bool {
	return c.within(field.NewPath("spec", "schema"), budget.PatternStates, statesIn(schema))
}

func statesIn(schema *apiextensionsv1.JSONSchemaProps) int {
	total := 0
	if schema.Pattern != "" {
		total = states(schema.Pattern)
	}
	for name := range schema.Properties {
		below := schema.Properties[name]
		total = added(total, statesIn(&below))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		total = added(total, statesIn(schema.Items.Schema))
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		total = added(total, statesIn(schema.AdditionalProperties.Schema))
	}
	return total
}

// states is about how many states a regular expression has. It is known from its parse tree, before the states are
// made: a few bytes can stand for a million of them. What can't be parsed has none; who compiles it says why.
func states(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	return max(len(pattern), statesOf(parsed))
}

func statesOf(tree *syntax.Regexp) int {
	size := 1 + len(tree.Rune)/2
	for _, below := range tree.Sub {
		size = added(size, statesOf(below))
	}
	if tree.Op == syntax.OpRepeat {
		return bounded(size, max(tree.Min, tree.Max, 1))
	}
	return size
}

// added is the sum, or something larger than maxValue.
func added(a, b int) int { return min(a+b, maxValue+1) }
