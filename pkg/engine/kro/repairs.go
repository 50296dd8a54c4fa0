package kro

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// repaired is a copy of kro's definition of a kind, which has parts that all definitions share, without
// what kro leaves wrong: literals that aren't JSON, fields called immutable that can be set and unset,
// rules that don't say which they are, and maps that have a schema for their values but don't say that
// values are allowed, so that validation would refuse every key.
func repaired(from *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd := from.DeepCopy()
	eachSchema(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, func(schema *apiextensionsv1.JSONSchemaProps) {
		quoteLiterals(schema)
		holdImmutables(schema)
		tellRules(schema)
		allowValues(schema)
	})
	return crd
}

// eachSchema visits a schema and all that are in it, as far as SimpleSchema makes them.
func eachSchema(schema *apiextensionsv1.JSONSchemaProps, visit func(*apiextensionsv1.JSONSchemaProps)) {
	visit(schema)
	for name, property := range schema.Properties {
		eachSchema(&property, visit)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		eachSchema(schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		eachSchema(schema.AdditionalProperties.Schema, visit)
	}
}

// quoteLiterals makes JSON of defaults and enums. kro puts them in quotes, without escaping what is in
// the text, and takes True for a boolean.
func quoteLiterals(schema *apiextensionsv1.JSONSchemaProps) {
	if schema.Default != nil {
		schema.Default = &apiextensionsv1.JSON{Raw: asJSON(schema.Default.Raw)}
		if string(schema.Default.Raw) == "null" {
			schema.Default = nil // as it is for who reads it from an API server
		}
	}
	for i := range schema.Enum {
		schema.Enum[i].Raw = asJSON(schema.Enum[i].Raw)
	}
}

func asJSON(raw []byte) []byte {
	if json.Valid(raw) {
		return raw
	}
	text := string(raw)
	if boolean, err := strconv.ParseBool(text); err == nil {
		return strconv.AppendBool(nil, boolean)
	}
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	} else {
		text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
	}
	// A string is always JSON.
	quoted, _ := json.Marshal(text)
	return quoted
}

// immutableRule is how kro makes a field immutable. Kubernetes evaluates it only if the field is there
// before and after, so that it doesn't keep an optional one from being set or unset.
const immutableRule = "self == oldSelf"

// holdImmutables has the object around immutable optional fields keep them set or unset.
func holdImmutables(schema *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		escaped, ok := apiservercel.Escape(name)
		if !ok || slices.Contains(schema.Required, name) || !isImmutable(property) {
			continue
		}
		schema.XValidations = append(schema.XValidations, apiextensionsv1.ValidationRule{
			Rule:    fmt.Sprintf("has(self.%s) == has(oldSelf.%s)", escaped, escaped),
			Message: name + " is immutable",
		})
	}
}

func isImmutable(schema apiextensionsv1.JSONSchemaProps) bool {
	return slices.ContainsFunc(schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool { return rule.Rule == immutableRule })
}

// kroRuleMessage is what kro has every rule of an author's say when it is violated.
const kroRuleMessage = "validation failed"

// tellRules lets violated rules say which they are: without a message of their own, Kubernetes shows
// the rule.
func tellRules(schema *apiextensionsv1.JSONSchemaProps) {
	for i := range schema.XValidations {
		if schema.XValidations[i].Message == kroRuleMessage {
			schema.XValidations[i].Message = ""
		}
	}
}

func allowValues(schema *apiextensionsv1.JSONSchemaProps) {
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		schema.AdditionalProperties.Allows = true
	}
}
