// Package compat says which changes of a kind's schema break what exists: objects that are stored, and
// clients that write or read them. Pure.
//
// It looks at the whole schema: every keyword that a structural schema can have is compared, in nested
// fields, list items and map values. What only widens what is allowed breaks nothing; neither do
// descriptions, defaults that change, and fields that are added unless they are required.
package compat

import (
	"cmp"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Breaking are the changes from before to after that break something, by field below at, in a stable
// order. Items of lists and values of maps are at field[*].
func Breaking(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) field.ErrorList {
	c := &comparison{}
	c.schema(before, after, at)
	slices.SortStableFunc(c.breaks, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail))
	})
	return c.breaks
}

type comparison struct{ breaks field.ErrorList }

// broken records one change.
func (c *comparison) broken(at *field.Path, format string, args ...any) {
	c.breaks = append(c.breaks, field.Forbidden(at, fmt.Sprintf(format, args...)))
}

// schema compares what a field was and is. A field whose type has changed is not looked at any further: all
// that could be said of it follows from that.
func (c *comparison) schema(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	if was, is := typeOf(before), typeOf(after); was != is {
		c.broken(at, "its type changes from %s to %s", was, is)
		return
	}
	c.bounds(before, after, at)
	c.allowed(before, after, at)
	c.rules(before, after, at)
	c.merging(before, after, at)
	c.contents(before, after, at)
}

// anyType is the type of a field that says none.
const anyType = "any"

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "integer or string"
	case schema.Type == "":
		return anyType
	default:
		return schema.Type
	}
}

// item is the place of what a list or a map holds.
func item(at *field.Path) *field.Path { return at.Key("*") }
