package kro

import (
	"sync"

	celunstructured "github.com/kubernetes-sigs/kro/pkg/cel/unstructured"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// view is a schema as CEL values use it. Kubernetes' own copies the schemas of all properties each
// time that one of them is looked up, which is most of what evaluating an expression costs; this one
// does it once. Safe for concurrent use.
type view struct {
	openapi.Schema
	properties func() map[string]common.Schema
	items      func() common.Schema
	additional func() common.SchemaOrBool
}

func newView(schema *spec.Schema) *view {
	return &view{
		Schema: openapi.Schema{Schema: schema},
		properties: sync.OnceValue(func() map[string]common.Schema {
			if schema.Properties == nil {
				return nil
			}
			out := make(map[string]common.Schema, len(schema.Properties))
			for name, property := range schema.Properties {
				out[name] = newView(&property)
			}
			return out
		}),
		items: sync.OnceValue(func() common.Schema {
			if schema.Items == nil || schema.Items.Schema == nil {
				return nil
			}
			return newView(schema.Items.Schema)
		}),
		additional: sync.OnceValue(func() common.SchemaOrBool {
			if schema.AdditionalProperties == nil {
				return nil
			}
			values := &viewOrBool{allows: schema.AdditionalProperties.Allows}
			if schema.AdditionalProperties.Schema != nil {
				values.schema = newView(schema.AdditionalProperties.Schema)
			}
			return values
		}),
	}
}

// Properties implements common.Schema.
func (v *view) Properties() map[string]common.Schema { return v.properties() }

// Items implements common.Schema.
func (v *view) Items() common.Schema { return v.items() }

// AdditionalProperties implements common.Schema.
func (v *view) AdditionalProperties() common.SchemaOrBool { return v.additional() }

// viewOrBool is the schema of additional properties, if they have one.
type viewOrBool struct {
	schema common.Schema
	allows bool
}

// Schema implements common.SchemaOrBool.
func (v *viewOrBool) Schema() common.Schema { return v.schema }

// Allows implements common.SchemaOrBool.
func (v *viewOrBool) Allows() bool { return v.allows }

// value is an object as CEL sees it under the schema: a Secret's data are bytes, and timestamps are
// timestamps, as the expressions were checked. Nothing is copied.
func (v *view) value(object map[string]any) any {
	return celunstructured.UnstructuredToVal(object, v)
}
