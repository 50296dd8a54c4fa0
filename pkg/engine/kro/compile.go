package kro

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kubernetes-sigs/kro/pkg/graph"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

var budgetInstalled = sync.OnceValue(checkBounded)

// Compile makes a program of a blueprint, or says everything that is wrong with it, in a stable
// order. Errors of type field.ErrorTypeInternal are not the author's: a plane could not be asked.
//
// kro's own compiler decides what compiles. Since it stops at the first error, what it refuses is
// examined again, piece by piece, for all that is wrong.
func Compile(blueprint *v1alpha1.ResourceGraphDefinition, export v1alpha1.ExportKey, schemas Schemas, limits Limits) (program *engine.Program, errs field.ErrorList) {
	defer func() {
		if cause := recover(); cause != nil {
			program, errs = nil, field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, fmt.Sprintf("the compiler can't cope with it: %v", cause))}
		}
	}()
	if err := budgetInstalled(); err != nil {
		return nil, field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	c := newCompilation(blueprint, schemas, limits)
	program = c.compile(export)
	if len(c.errs) > 0 {
		return nil, c.sorted()
	}
	return program, nil
}

// Outline is the resources of a blueprint as far as their kinds are known, whatever else is wrong with it:
// enough to tell what consumers would be asked for. It has no order, levels or dependencies.
func Outline(blueprint *v1alpha1.ResourceGraphDefinition, schemas Schemas, limits Limits) (nodes []engine.Node) {
	defer func() {
		if recover() != nil {
			nodes = nil // Compile says what there is to say
		}
	}()
	c := newCompilation(blueprint, schemas, limits)
	if !c.checkSize() {
		return nil
	}
	c.checkStructure()
	c.resolveKinds()
	for _, r := range c.resources {
		if r.kind != nil {
			nodes = append(nodes, engine.Node{ID: v1alpha1.NodeID(r.ID), Target: r.Target, GVR: r.kind.GVR, External: r.ExternalRef != nil, Selects: r.selects()})
		}
	}
	return nodes
}

// compilation is one run of the compiler.
type compilation struct {
	name      string
	spec      v1alpha1.ResourceGraphDefinitionSpec
	schemas   Schemas
	limits    Limits
	resources []*resource
	fields    simpleSchema
	errs      field.ErrorList
}

// resource is one resource of the blueprint, as far as it can be understood.
type resource struct {
	v1alpha1.Resource
	path *field.Path
	// object is the template, or what an externalRef says as an object; nil if there is none or it isn't an object.
	object map[string]any
	// kind is set if the template's kind is known.
	kind *Kind
}

func newCompilation(blueprint *v1alpha1.ResourceGraphDefinition, schemas Schemas, limits Limits) *compilation {
	c := &compilation{
		name:    blueprint.Name,
		spec:    engine.Defaulted(blueprint.Spec),
		schemas: schemas,
		limits:  limits,
	}
	path := field.NewPath("spec", "resources")
	for i := range c.spec.Resources {
		c.resources = append(c.resources, &resource{Resource: c.spec.Resources[i], path: path.Index(i)})
	}
	return c
}

// compile returns nil if there are errors.
func (c *compilation) compile(export v1alpha1.ExportKey) *engine.Program {
	if !c.checkSize() {
		return nil
	}
	c.checkStructure()
	c.resolveKinds()
	c.checkLiterals()
	if len(c.errs) > 0 {
		c.diagnose()
		return nil
	}
	compiled, err := c.build()
	if err != nil {
		if c.diagnose(); len(c.errs) == 0 {
			c.errs = append(c.errs, c.attributed(err))
		}
		return nil
	}
	crd := c.finishedCRD(compiled.CRD)
	if len(c.errs) > 0 {
		return nil
	}
	nodes := c.nodes(compiled)
	if !c.checkDependencies(nodes) {
		return nil
	}
	evaluated, err := newGraph(compiled, c.limits)
	if err != nil {
		c.errs = append(c.errs, c.attributed(err))
		return nil
	}
	if err := c.completeReferences(evaluated, compiled.ResourceSchemas); err != nil {
		if c.diagnose(); len(c.errs) == 0 {
			c.errs = append(c.errs, c.attributed(err))
		}
		return nil
	}
	return &engine.Program{
		Blueprint: c.name,
		Export:    export,
		SpecHash:  engine.SpecHash(c.spec),
		CRD:       crd,
		Nodes:     nodes,
		Graph:     evaluated,
		Limits:    c.limits,
	}
}

// nodes are the program's nodes in topological order, with their levels.
func (c *compilation) nodes(compiled *graph.Graph) []engine.Node {
	levels := make(map[v1alpha1.NodeID]int32, len(compiled.TopologicalOrder))
	nodes := make([]engine.Node, 0, len(compiled.TopologicalOrder))
	for _, id := range compiled.TopologicalOrder {
		from := compiled.Nodes[id]
		r := c.resources[from.Meta.Index]
		node := engine.Node{
			ID:             v1alpha1.NodeID(id),
			Target:         r.Target,
			GVK:            from.Template.GroupVersionKind(),
			GVR:            from.Meta.GVR,
			Namespaced:     from.Meta.Namespaced,
			Collection:     from.Meta.Type == graph.NodeTypeCollection,
			External:       r.ExternalRef != nil,
			Selects:        r.selects(),
			ConflictPolicy: r.ConflictPolicy,
			DeletionPolicy: r.DeletionPolicy,
		}
		for _, dependency := range slices.Sorted(slices.Values(from.Meta.Dependencies)) {
			node.DependsOn = append(node.DependsOn, v1alpha1.NodeID(dependency))
			node.Level = max(node.Level, levels[v1alpha1.NodeID(dependency)]+1)
		}
		levels[node.ID] = node.Level
		nodes = append(nodes, node)
	}
	return nodes
}

func (c *compilation) checkDependencies(nodes []engine.Node) bool {
	count := 0
	for i := range nodes {
		count += len(nodes[i].DependsOn)
	}
	return c.within(field.NewPath("spec", "resources"), budget.Dependencies, count)
}

// refuse records an error.
func (c *compilation) refuse(err *field.Error) { c.errs = append(c.errs, err) }

// sorted gives the errors by place, each once: the schema first, then the resources in their order.
func (c *compilation) sorted() field.ErrorList {
	slices.SortStableFunc(c.errs, func(a, b *field.Error) int {
		return cmp.Or(
			cmp.Compare(resourceIndex(a.Field), resourceIndex(b.Field)),
			cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Error(), b.Error()),
		)
	})
	return slices.CompactFunc(c.errs, func(a, b *field.Error) bool { return a.Error() == b.Error() })
}

// resourceIndex is the number in spec.resources[12].template, and -1 elsewhere.
func resourceIndex(path string) int {
	var index int
	if _, err := fmt.Sscanf(path, "spec.resources[%d]", &index); err != nil {
		return -1
	}
	return index
}

// asNotFound is the error as *KindNotFoundError.
func asNotFound(err error) *KindNotFoundError {
	var notFound *KindNotFoundError
	errors.As(err, &notFound)
	return notFound
}
