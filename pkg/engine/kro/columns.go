package kro

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kroschema "github.com/kubernetes-sigs/kro/pkg/graph/schema"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"
)

// checkColumns refuses printer columns that can never show anything. An API server would take them.
func (c *compilation) checkColumns(crd *apiextensionsv1.CustomResourceDefinition) {
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	columns := field.NewPath("spec", "schema", "additionalPrinterColumns")
	for i, column := range c.spec.Schema.AdditionalPrinterColumns {
		path := columns.Index(i).Child("jsonPath")
		if !strings.HasPrefix(column.JSONPath, ".") {
			continue // refused already
		}
		parsed, err := jsonpath.Parse(column.Name, "{"+column.JSONPath+"}")
		if err != nil {
			c.refuse(field.Invalid(path, column.JSONPath, "expected the path of a field, such as .spec.size: "+err.Error()))
			continue
		}
		if message := columnProblem(root, steps(parsed.Root)); message != "" {
			c.refuse(field.Invalid(path, column.JSONPath, message))
		}
	}
}

// steps are the nodes of a path in their order.
func steps(list *jsonpath.ListNode) []jsonpath.Node {
	var out []jsonpath.Node
	for _, node := range list.Nodes {
		if below, ok := node.(*jsonpath.ListNode); ok {
			out = append(out, steps(below)...)
			continue
		}
		out = append(out, node)
	}
	return out
}

// columnProblem says which step leads to no field, as far as the schema tells.
func columnProblem(schema *apiextensionsv1.JSONSchemaProps, steps []jsonpath.Node) string {
	for i, step := range steps {
		switch node := step.(type) {
		case *jsonpath.FieldNode:
			if i == 0 && node.Value == "metadata" {
				return metadataProblem(steps[1:])
			}
			if schema.XPreserveUnknownFields != nil || schema.XIntOrString || schema.Type == "" {
				return ""
			}
			below := fieldOf(schema, node.Value)
			if below == nil {
				return noSuchField(node.Value, slices.Sorted(maps.Keys(schema.Properties)))
			}
			schema = below
		case *jsonpath.ArrayNode, *jsonpath.FilterNode:
			if schema.Items == nil || schema.Items.Schema == nil {
				return ""
			}
			schema = schema.Items.Schema
		default:
			return ""
		}
	}
	return ""
}

func fieldOf(schema *apiextensionsv1.JSONSchemaProps, name string) *apiextensionsv1.JSONSchemaProps {
	if below, found := schema.Properties[name]; found {
		return &below
	}
	switch values := schema.AdditionalProperties; {
	case values == nil:
		return nil
	case values.Schema != nil:
		return values.Schema
	case values.Allows:
		unknown := anything()
		return &unknown
	default:
		return nil
	}
}

func metadataProblem(steps []jsonpath.Node) string {
	if len(steps) == 0 {
		return ""
	}
	name, ok := steps[0].(*jsonpath.FieldNode)
	if !ok {
		return ""
	}
	if _, found := kroschema.ObjectMetaSchema.Properties[name.Value]; !found {
		return noSuchField(name.Value, slices.Sorted(maps.Keys(kroschema.ObjectMetaSchema.Properties)))
	}
	return ""
}

func noSuchField(name string, known []string) string {
	return fmt.Sprintf("unknown field %q, expected %s", name, oneOfNames(known))
}
