package kro

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celcommon "github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// checkType compares the type of an expression with that of the field it stands in.
func (d *diagnosis) checkType(u use, output *cel.Type, at place) {
	expected := d.typeOf(at)
	if u.resource != nil && u.resource.ExternalRef != nil {
		expected = referenceType(u.resource, at.path)
	}
	if u.expression.OriginalTemplate != "" {
		expected = cel.StringType
	}
	if expected.IsAssignableType(output) {
		return
	}
	if compatible, err := krocel.AreTypesStructurallyCompatible(output, expected, d.provider); !compatible {
		message := fmt.Sprintf("expected %s, found %s", typeName(expected), typeName(output))
		if err != nil && expected.Kind() == output.Kind() {
			message += " (" + prettyTypes(err.Error()) + ")"
		}
		d.refuseUse(u, message)
	}
}

// referenceType is the type of a field of an externalRef, as kro checks it.
func referenceType(r *resource, path *field.Path) *cel.Type {
	metadata := r.body().Child("metadata")
	selector := metadata.Child("selector")
	switch at := path.String(); {
	case at == metadata.Child("name").String(), at == metadata.Child("namespace").String():
		return cel.StringType
	case at == selector.String():
		return cel.MapType(cel.StringType, cel.DynType)
	case at == selector.Child("matchLabels").String():
		return cel.MapType(cel.StringType, cel.StringType)
	case strings.HasPrefix(at, selector.Child("matchLabels").String()):
		return cel.StringType
	case at == selector.Child("matchExpressions").String():
		return cel.ListType(cel.DynType)
	default:
		return cel.DynType
	}
}

func (d *diagnosis) typeOf(at place) *cel.Type {
	if at.schema == nil {
		return cel.DynType
	}
	if declared, ok := d.provider.FindDeclType(at.typeName); ok {
		return declared.CelType()
	}
	declared := krocel.SchemaDeclTypeWithMetadata(&openapi.Schema{Schema: at.schema}, false)
	if declared == nil {
		return cel.DynType
	}
	return declared.MaybeAssignTypeName(at.typeName).CelType()
}

func typeName(t *cel.Type) string { return prettyTypes(t.String()) }

var internalTypes = regexp.MustCompile(krocel.TypeNamePrefix + `([A-Za-z0-9_.@]+)`)

// prettyTypes writes kro's names of types as the fields that they are the types of.
func prettyTypes(text string) string {
	return internalTypes.ReplaceAllStringFunc(text, func(name string) string {
		name = strings.TrimPrefix(name, krocel.TypeNamePrefix)
		name = strings.ReplaceAll(name, ".@idx", "[]")
		return "object " + strings.ReplaceAll(name, ".@elem", "[]")
	})
}

var (
	undefinedField = regexp.MustCompile(`^undefined field '(.+)'$`)
	noOverload     = regexp.MustCompile(`^found no matching overload for '(.+)' applied to '(.+)'$`)
	noFields       = regexp.MustCompile(`^type '(.+)' does not support field selection$`)
	undeclared     = regexp.MustCompile(`^undeclared reference to '(.+?)'(?: \(in container '.*'\))?$`)
)

// celWords is what CEL's checker says, in words for authors.
func celWords(text string) string {
	if match := noOverload.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("%s can't be applied to %s", operatorName(match[1]), match[2])
	}
	if match := noFields.FindStringSubmatch(text); match != nil && strings.HasPrefix(match[1], "list(") {
		return fmt.Sprintf("expected an object, found %s: [0] is its first element, and map() reads each", match[1])
	} else if match != nil {
		return fmt.Sprintf("expected an object, found %s, which has no fields", match[1])
	}
	if match := undeclared.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("unknown name or function %q", match[1])
	}
	return text
}

// issueText is CEL's message in words for authors, with its place unless that is the start.
func (d *diagnosis) issueText(u use, issue *celcommon.Error) string {
	text := celWords(prettyTypes(issue.Message))
	if match := undefinedField.FindStringSubmatch(text); match != nil {
		text = fmt.Sprintf("unknown field %q", match[1])
		if schema := d.schemaWithout(u, match[1]); schema != nil {
			text += ", expected " + oneOf(schema, match[1]) + unquoted(schema, match[1])
		}
	}
	// Places in a string with expressions are those in what kro makes of it.
	if column := issue.Location.Column(); column > 0 && u.expression.OriginalTemplate == "" {
		text = fmt.Sprintf("%s (at character %d)", text, column+1)
	}
	return text
}

// yamlBooleans are what YAML 1.1 reads as a boolean unless it is quoted. As the name of a field it is then "true"
// or "false".
var yamlBooleans = map[string]string{
	"y": "true", "Y": "true", "yes": "true", "Yes": "true", "on": "true", "On": "true",
	"n": "false", "N": "false", "no": "false", "No": "false", "off": "false", "Off": "false",
}

// unquoted says so if an author has lost a field to YAML.
func unquoted(schema *spec.Schema, name string) string {
	boolean, isOne := yamlBooleans[name]
	if _, lost := schema.Properties[boolean]; !isOne || !lost {
		return ""
	}
	return fmt.Sprintf(" (YAML reads the name %s as %s: quote it where the field is declared)", name, boolean)
}

// operatorName is an operator or function as authors write it.
func operatorName(function string) string {
	if function == operators.Conditional {
		return "? :"
	}
	if symbol, ok := operators.FindReverse(function); ok && symbol != "" {
		return symbol
	}
	return function
}

// schemaWithout is the schema that the expression looks for the field in. What is behind an optional selection or in
// has() is in no path; then it is the one that a path ends at, if there is only one.
func (d *diagnosis) schemaWithout(u use, name string) *spec.Schema {
	var ends []*spec.Schema
	for _, chain := range paths(u.expression.Original) {
		schema := d.types[chain.root]
		if chain.root == graph.EachVarName && u.resource != nil && u.resource.kind != nil {
			schema = u.resource.kind.Schema
		}
		for _, s := range chain.steps {
			declared := declaration(schema, s)
			if declared == nil && schema != nil && s.field == name {
				return schema
			}
			schema = declared
		}
		if lacks(schema, name) && !slices.Contains(ends, schema) {
			ends = append(ends, schema)
		}
	}
	if len(ends) != 1 {
		return nil
	}
	return ends[0]
}

// lacks says whether it is an object with fields, but without this one.
func lacks(schema *spec.Schema, name string) bool {
	if schema == nil || len(schema.Properties) == 0 {
		return false
	}
	_, declared := schema.Properties[name]
	return !declared
}
