package compat

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// contents compares what an object, a map or a list holds.
func (c *comparison) contents(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	if keepsUnknown(before) && !keepsUnknown(after) {
		c.broken(at, "fields that the schema doesn't have are no longer kept")
	}
	c.fields(before, after, at)
	c.required(before, after, at)
	c.mapValues(before, after, at)
	was, is := items(before), items(after)
	switch {
	case is == nil:
	case was == nil:
		c.broken(at, "its items, which could be anything, get a type")
	default:
		c.schema(was, is, item(at))
	}
}

func keepsUnknown(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
}

// fields compares those that there were. One that is gone is dropped from what is stored, unless unknown
// fields are kept or the object has become a map whose values may be like it.
func (c *comparison) fields(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		was := before.Properties[name]
		if is, ok := after.Properties[name]; ok {
			c.schema(&was, &is, at.Child(name))
			continue
		}
		if value := values(after); value != nil {
			c.schema(&was, value, at.Child(name))
			continue
		}
		if !keepsUnknown(after) && !anyValues(after) {
			c.broken(at.Child(name), "the field is removed")
		}
	}
}

// required compares which fields must be set. A default sets the field of stored objects too, when they are read.
func (c *comparison) required(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	for _, name := range slices.Sorted(slices.Values(after.Required)) {
		was, existed := before.Properties[name]
		is := after.Properties[name]
		switch {
		case is.Default != nil:
		case !existed:
			c.broken(at.Child(name), "a required field without a default is added")
		case !slices.Contains(before.Required, name):
			c.broken(at.Child(name), "it becomes required, without a default")
		case was.Default != nil:
			c.broken(at.Child(name), "it is required and loses its default")
		}
	}
}

// mapValues compares what a map holds.
func (c *comparison) mapValues(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	was, is := values(before), values(after)
	switch {
	case was != nil && is != nil:
		c.schema(was, is, item(at))
	case was == nil && !anyValues(before):
	case is != nil:
		c.broken(at, "its values, which could be anything, get a type")
	case !anyValues(after) && !keepsUnknown(after):
		c.broken(at, "it is no longer a map with any keys")
	}
}

// values is the schema of a map's values; nil if it isn't a map, or one of anything.
func values(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.AdditionalProperties == nil {
		return nil
	}
	return schema.AdditionalProperties.Schema
}

// anyValues says whether the schema is that of a map of anything.
func anyValues(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema == nil && schema.AdditionalProperties.Allows
}

func items(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}
