package compat

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// allowed compares which single values are allowed.
func (c *comparison) allowed(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	c.enum(before.Enum, after.Enum, at)
	c.text("pattern", before.Pattern, after.Pattern, at)
	if !widerFormat(before.Format, after.Format) {
		c.text("format", before.Format, after.Format, at)
	}
	if before.Nullable && !after.Nullable {
		c.broken(at, "null is no longer allowed")
	}
	if after.UniqueItems && !before.UniqueItems {
		c.broken(at, "uniqueItems is added")
	}
	if after.XEmbeddedResource && !before.XEmbeddedResource {
		c.broken(at, "it has to be a whole Kubernetes object")
	}
}

func (c *comparison) enum(before, after []apiextensionsv1.JSON, at *field.Path) {
	switch is := texts(after); {
	case len(after) == 0:
	case len(before) == 0:
		c.broken(at, "enum [%s] is added", strings.Join(is, ", "))
	default:
		gone := slices.DeleteFunc(texts(before), func(value string) bool { return slices.Contains(is, value) })
		if len(gone) > 0 {
			c.broken(at, "enum loses %s", strings.Join(gone, ", "))
		}
	}
}

func texts(values []apiextensionsv1.JSON) []string {
	out := make([]string, 0, len(values))
	for _, value := range values {
		out = append(out, string(value.Raw))
	}
	return out
}

// text compares a constraint that can't be told to be weaker or stronger than another one.
func (c *comparison) text(name, before, after string, at *field.Path) {
	switch {
	case after == "" || after == before:
	case before == "":
		c.broken(at, "%s %q is added", name, after)
	default:
		c.broken(at, "%s changes from %q to %q", name, before, after)
	}
}

// widerFormat says whether the format of a number has only become wider.
func widerFormat(before, after string) bool {
	return before == "int32" && after == "int64" || before == "float" && after == "double"
}

// rules compares what is checked of a field as a whole. A rule is known by its text: another message is no
// other rule, and whether another expression asks for less can't be told.
func (c *comparison) rules(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	for _, rule := range after.XValidations {
		known := slices.ContainsFunc(before.XValidations, func(old apiextensionsv1.ValidationRule) bool { return old.Rule == rule.Rule })
		if !known {
			c.broken(at, "validation %q is added", rule.Rule)
		}
	}
	for _, each := range []struct {
		name          string
		before, after any
		present       bool
	}{
		{"allOf", before.AllOf, after.AllOf, len(after.AllOf) > 0},
		{"anyOf", before.AnyOf, after.AnyOf, len(after.AnyOf) > 0},
		{"oneOf", before.OneOf, after.OneOf, len(after.OneOf) > 0},
		{"not", before.Not, after.Not, after.Not != nil},
	} {
		if each.present && !equality.Semantic.DeepEqual(each.before, each.after) {
			c.broken(at, "%s changes", each.name)
		}
	}
}

// Defaults of x-kubernetes-list-type and x-kubernetes-map-type.
const (
	defaultListType = "atomic"
	defaultMapType  = "granular"
)

// merging compares how lists and maps are merged. A list that becomes a set or a map must have no
// duplicates; any other change alters what a server-side apply of several owners comes to.
func (c *comparison) merging(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	if was, is := or(before.XListType, defaultListType), or(after.XListType, defaultListType); was != is {
		c.broken(at, "listType changes from %s to %s", was, is)
	} else if !slices.Equal(slices.Sorted(slices.Values(before.XListMapKeys)), slices.Sorted(slices.Values(after.XListMapKeys))) {
		c.broken(at, "listMapKey changes from %s to %s", shown(before.XListMapKeys), shown(after.XListMapKeys))
	}
	if was, is := or(before.XMapType, defaultMapType), or(after.XMapType, defaultMapType); was != is {
		c.broken(at, "mapType changes from %s to %s", was, is)
	}
}

func or(value *string, otherwise string) string {
	if value == nil {
		return otherwise
	}
	return *value
}

func shown(keys []string) string { return fmt.Sprintf("[%s]", strings.Join(keys, ", ")) }
