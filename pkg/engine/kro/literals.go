package kro

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// literals looks at what a template says without expressions: a child with such a value would be
// refused for every instance. Types and unknown fields are not looked at: kro does that.
type literals struct {
	*compilation
	resource *resource
	// exact is set if the schema says precisely what the plane's server takes.
	exact bool
}

// checkLiterals refuses literals that the child's schema forbids.
func (c *compilation) checkLiterals() {
	for _, r := range c.resources {
		if r.kind == nil || r.object == nil || r.ExternalRef != nil || r.isCRD() {
			continue
		}
		l := literals{compilation: c, resource: r, exact: !isBuiltIn(r.gvk().Group)}
		for _, name := range slices.Sorted(maps.Keys(r.object)) {
			if schema, found := r.kind.Schema.Properties[name]; found && name != "metadata" && name != "status" {
				l.value(r.path.Child("template", name), r.object[name], &schema)
			}
		}
		l.missing(r.path.Child("template"), r.object, r.kind.Schema)
	}
}

// isBuiltIn says whether the group can be one of Kubernetes' own. Their servers fill in some fields that
// their schemas require (the apiGroup of a RoleBinding's roleRef), and take an empty text for none.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func (l *literals) value(path *field.Path, value any, schema *spec.Schema) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		l.missing(path, v, schema)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if below := schemaBelow(schema, name); below != nil {
				l.value(child(path, name), v[name], below)
			}
		}
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			return
		}
		for i, element := range v {
			l.value(path.Index(i), element, schema.Items.Schema)
		}
	case string:
		if !strings.Contains(v, "${") && (v != "" || l.exact) {
			l.scalar(path, v, schema)
		}
	default:
		l.scalar(path, v, schema)
	}
}

func schemaBelow(schema *spec.Schema, name string) *spec.Schema {
	if below, found := schema.Properties[name]; found {
		return &below
	}
	if schema.AdditionalProperties != nil {
		return schema.AdditionalProperties.Schema
	}
	return nil
}

// missing refuses an object without a field that it must have and that has no default.
func (l *literals) missing(path *field.Path, object map[string]any, schema *spec.Schema) {
	if !l.exact {
		return
	}
	for _, name := range slices.Sorted(slices.Values(schema.Required)) {
		if _, found := object[name]; !found && schema.Properties[name].Default == nil {
			l.refuse(field.Required(child(path, name), l.about(l.resource, "", fmt.Sprintf("%s requires it", l.resource.gvk().Kind))))
		}
	}
}

func (l *literals) scalar(path *field.Path, value any, schema *spec.Schema) {
	for _, message := range violations(schema, value) {
		l.refuse(field.Invalid(path, value, l.about(l.resource, "", message)))
	}
}

// violations are the bounds of the schema that a text, number or boolean doesn't keep.
func violations(schema *spec.Schema, value any) []string {
	var out []string
	for _, bound := range bounds(schema) {
		for _, err := range validate.NewSchemaValidator(&spec.Schema{SchemaProps: bound}, nil, "", strfmt.Default).Validate(value).Errors {
			out = append(out, inWords(err.Error()))
		}
	}
	if text, isText := value.(string); isText && schema.Format == "byte" {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			out = append(out, "expected base64; plain text for a Secret goes into stringData")
		}
	}
	return out
}

// bounds are what a schema asks of a value beside its type, one by one: a validator stops at the first
// that a value doesn't keep.
func bounds(schema *spec.Schema) []spec.SchemaProps {
	var out []spec.SchemaProps
	if len(schema.Enum) > 0 {
		out = append(out, spec.SchemaProps{Enum: schema.Enum})
	}
	if schema.Pattern != "" {
		out = append(out, spec.SchemaProps{Pattern: schema.Pattern})
	}
	if schema.MinLength != nil || schema.MaxLength != nil {
		out = append(out, spec.SchemaProps{MinLength: schema.MinLength, MaxLength: schema.MaxLength})
	}
	if schema.Minimum != nil {
		out = append(out, spec.SchemaProps{Minimum: schema.Minimum, ExclusiveMinimum: schema.ExclusiveMinimum})
	}
	if schema.Maximum != nil {
		out = append(out, spec.SchemaProps{Maximum: schema.Maximum, ExclusiveMaximum: schema.ExclusiveMaximum})
	}
	if schema.MultipleOf != nil {
		out = append(out, spec.SchemaProps{MultipleOf: schema.MultipleOf})
	}
	return out
}
