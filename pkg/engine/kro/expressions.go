package kro

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// checkExpressions refuses more expressions, or longer ones, than there is time to compile.
func (c *compilation) checkExpressions() bool {
	count := 0
	if c.spec.Schema != nil {
		path := field.NewPath("spec", "schema", "status")
		count = expressionsIn(c.spec.Schema.Status.Raw)
		c.checkLengths(path, c.spec.Schema.Status.Raw)
	}
	for _, r := range c.resources {
		count += expressionsIn(r.Template.Raw)
		c.checkLengths(r.path.Child("template"), r.Template.Raw)
		if ref := r.ExternalRef; ref != nil {
			count += c.checkReferenceTexts(r.path.Child("externalRef", "metadata"), ref.Metadata)
		}
		for i, text := range r.ReadyWhen {
			count += c.checkText(r.path.Child("readyWhen").Index(i), text)
		}
		for i, text := range r.IncludeWhen {
			count += c.checkText(r.path.Child("includeWhen").Index(i), text)
		}
		for i, axis := range r.ForEach {
			for _, name := range slices.Sorted(maps.Keys(axis)) {
				count += c.checkText(r.path.Child("forEach").Index(i).Child(name), axis[name])
			}
		}
	}
	return c.within(field.NewPath("spec"), budget.Expressions, count) && len(c.errs) == 0
}

func (c *compilation) checkReferenceTexts(path *field.Path, of v1alpha1.ExternalRefMetadata) int {
	c.checkLengths(path.Child("selector"), of.Selector.Raw)
	return expressionsIn(of.Selector.Raw) + c.checkText(path.Child("name"), of.Name) + c.checkText(path.Child("namespace"), of.Namespace)
}

const opening = "${"

func expressionsIn(raw []byte) int { return bytes.Count(raw, []byte(opening)) }

// checkText counts the expressions of a string.
func (c *compilation) checkText(path *field.Path, text string) int {
	count := strings.Count(text, opening)
	if count > 0 {
		c.within(path, budget.ExpressionBytes, len(text))
	}
	return count
}

// checkLengths looks at the strings of a tree: one that has an expression in it is compiled as a whole.
func (c *compilation) checkLengths(path *field.Path, raw []byte) {
	if len(raw) <= c.limits.Of(budget.ExpressionBytes) {
		return
	}
	var tree any
	if json.Unmarshal(raw, &tree) != nil {
		return
	}
	eachLeaf(path, tree, func(path *field.Path, leaf any) {
		if text, ok := leaf.(string); ok {
			c.checkText(path, text)
		}
	})
}

// eachLeaf visits the values of a tree that are neither objects nor lists, in a stable order.
func eachLeaf(path *field.Path, tree any, visit func(path *field.Path, leaf any)) {
	switch v := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachLeaf(child(path, name), v[name], visit)
		}
	case []any:
		for i, element := range v {
			eachLeaf(path.Index(i), element, visit)
		}
	default:
		visit(path, v)
	}
}
