package kro

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	krov1alpha1 "github.com/kubernetes-sigs/kro/api/v1alpha1"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/cel/ast"
	krolibrary "github.com/kubernetes-sigs/kro/pkg/cel/library"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	"github.com/kubernetes-sigs/kro/pkg/graph/crd"
	"github.com/kubernetes-sigs/kro/pkg/graph/parser"
	kroschema "github.com/kubernetes-sigs/kro/pkg/graph/schema"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// diagnosis examines a blueprint that doesn't compile: each field and each expression by itself, with
// kro's own parser and type checker, so that one error doesn't hide another. What is already known to
// be wrong is of any type, so that it doesn't cause others.
type diagnosis struct {
	*compilation
	// resources by id; of those that share one, the first.
	byID      map[string]*resource
	lookups   *kroschema.Cache
	parser    *parser.Parser
	inspector *ast.Inspector
	types     map[string]*spec.Schema
	env       *cel.Env
	provider  *krocel.DeclTypeProvider
	// dependencies are between ids, as far as expressions could be read.
	dependencies map[string][]string
}

// diagnose adds everything that is wrong with schema and expressions.
func (c *compilation) diagnose() {
	d := &diagnosis{
		compilation:  c,
		byID:         make(map[string]*resource),
		lookups:      kroschema.NewCache(),
		types:        make(map[string]*spec.Schema),
		dependencies: make(map[string][]string),
	}
	d.parser = parser.New(d.lookups)
	for _, r := range c.resources {
		if d.byID[r.ID] == nil && lowerCamel.MatchString(r.ID) && !reservedNames.Has(r.ID) {
			d.byID[r.ID] = r
		}
	}
	instance := d.instanceSchema()
	if err := d.environments(instance); err != nil {
		c.refuse(field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error()))
		return
	}
	for _, r := range c.resources {
		d.examine(r)
	}
	d.status()
	d.cycles()
}

// instanceSchema is the schema of the instance as expressions see it, as far as it has no errors.
func (d *diagnosis) instanceSchema() *spec.Schema {
	fields, err := d.fields.schema()
	if err != nil {
		d.refuse(field.Invalid(field.NewPath("spec", "schema", "spec"), field.OmitValueType{}, err.Error()))
		return nil
	}
	d.checkDefinition(*fields)
	return d.withMetadata(*fields)
}

// withMetadata is the schema of the whole instance. Its status is no business of expressions.
func (d *diagnosis) withMetadata(instance apiextensionsv1.JSONSchemaProps) *spec.Schema {
	s := d.spec.Schema
	definition := crd.SynthesizeCRD(s.Group, s.APIVersion, s.Kind, instance, apiextensionsv1.JSONSchemaProps{}, false,
		apiextensionsv1.NamespaceScoped, &krov1alpha1.Schema{})
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.DeepCopy()
	delete(root.Properties, "status")
	out, err := kroschema.ConvertJSONSchemaPropsToSpecSchema(root)
	if err != nil {
		d.refuse(field.Invalid(field.NewPath("spec", "schema", "spec"), field.OmitValueType{}, err.Error()))
		return nil
	}
	untyped(out)
	out.Properties["metadata"] = kroschema.ObjectMetaSchema
	if s.Scope == v1alpha1.ScopeCluster {
		out.Properties["metadata"] = kroschema.NamespacelessObjectMetaSchema
	}
	return out
}

// untyped lets expressions do anything with what isn't understood: of all schemas, kro gives only those
// of integers or strings no type.
func untyped(schema *spec.Schema) {
	if schema.Description == notUnderstoodMark {
		*schema = spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-int-or-string": true}}}
		schema.Description = notUnderstoodMark
		return
	}
	for name, below := range schema.Properties {
		untyped(&below)
		schema.Properties[name] = below
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		untyped(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		untyped(schema.AdditionalProperties.Schema)
	}
}

// environments makes the type checker's environment, and the inspector that finds names.
func (d *diagnosis) environments(instance *spec.Schema) error {
	anyType := []cel.EnvOption{}
	for id, r := range d.byID {
		switch {
		case r.kind == nil:
			anyType = append(anyType, cel.Variable(id, cel.DynType))
		case r.isList():
			d.types[id] = d.lookups.WrapAsList(r.kind.Schema)
		default:
			d.types[id] = r.kind.Schema
		}
	}
	if instance == nil {
		anyType = append(anyType, cel.Variable(graph.SchemaVarName, cel.DynType))
	} else {
		d.types[graph.SchemaVarName] = instance
	}
	env, provider, err := krocel.TypedEnvironmentWithProvider(d.types)
	if err != nil {
		return err
	}
	if d.env, err = env.Extend(anyType...); err != nil {
		return err
	}
	d.provider = provider
	names := append(slices.Sorted(maps.Keys(d.byID)), graph.SchemaVarName, graph.EachVarName, krolibrary.RuntimeVarName)
	inspected, err := krocel.DefaultEnvironment(krocel.WithResourceIDs(names))
	if err != nil {
		return err
	}
	d.inspector = ast.NewInspectorWithEnv(inspected, names)
	return nil
}

// cycles reports each circle of dependencies once, at the first of its resources.
func (d *diagnosis) cycles() {
	done := make(map[string]bool)
	for _, r := range d.resources {
		if d.byID[r.ID] == r {
			d.cycleFrom(r.ID, nil, done)
		}
	}
}

func (d *diagnosis) cycleFrom(id string, trail []string, done map[string]bool) {
	if start := slices.Index(trail, id); start >= 0 {
		circle := append(slices.Clone(trail[start:]), id)
		d.refuse(field.Invalid(d.byID[id].path, id, "resources depend on each other in a circle: "+strings.Join(circle, " -> ")))
		return
	}
	if done[id] {
		return
	}
	for _, dependency := range d.dependencies[id] {
		d.cycleFrom(dependency, append(trail, id), done)
	}
	done[id] = true
}

// child is a field below another one, in brackets if its name isn't a word.
func child(path *field.Path, name string) *field.Path {
	if name == "" || strings.ContainsAny(name, `.[]/ "`) {
		return path.Key(name)
	}
	return path.Child(name)
}

// about says which resource a message is about.
func (c *compilation) about(r *resource, what, message string) string {
	if what != "" {
		what = " " + what
	}
	if r == nil {
		return strings.TrimSpace(what + ": " + message)
	}
	return fmt.Sprintf("resource %q%s: %s", r.ID, what, message)
}
