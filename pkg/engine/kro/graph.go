package kro

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/graph"
	"github.com/kubernetes-sigs/kro/pkg/graph/fieldpath"
	"github.com/kubernetes-sigs/kro/pkg/graph/schema"
	"github.com/kubernetes-sigs/kro/pkg/graph/variable"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// graphProgram is what kro made of a blueprint, in the form that passes need. kro has a runtime of
// its own, which krop doesn't use: its answer to what is ignored takes exponential time, errors lose
// the node and expression that they are about, readyWhen sees values of other types than it was
// checked with, and nothing in it is bounded.
type graphProgram struct {
	limits Limits
	nodes  map[v1alpha1.NodeID]*node
	status *template
	// conditions are the author's, each giving a condition or a list of them.
	conditions []*expression
	// instance is the schema of instances, without status.
	instance *view
}

// node is one resource. Immutable.
type node struct {
	id         v1alpha1.NodeID
	dependsOn  []v1alpha1.NodeID
	namespaced bool
	collection bool
	// selects is set for a label selector; target and kind for what is only read.
	selects    bool
	target     v1alpha1.Target
	kind       string
	schema     *spec.Schema
	view       *view
	template   *template
	include    []*expression
	ready      []*expression
	dimensions []dimension
}

// isList says whether other nodes see a list in this one.
func (n *node) isList() bool { return n.collection || n.selects }

// observedSchema is the schema of what other nodes see of this one: a collection and a selection are lists.
func (n *node) observedSchema() *spec.Schema {
	if !n.isList() {
		return n.schema
	}
	return schema.NewCache().WrapAsList(n.schema)
}

// dimension is one axis of a forEach.
type dimension struct {
	name string
	list *expression
}

// dimension is the forEach axis of this name, nil if there is none.
func (n *node) dimension(name string) *dimension {
	if n == nil {
		return nil
	}
	for i := range n.dimensions {
		if n.dimensions[i].name == name {
			return &n.dimensions[i]
		}
	}
	return nil
}

// template is an object with the places where values go.
type template struct {
	object map[string]any
	// size of the object, in bytes as JSON.
	size   int
	fields []templateField
}

type templateField struct {
	path       string
	segments   []fieldpath.Segment
	expression *expression
	// perItem is set where the value depends on the forEach variables.
	perItem bool
}

func newGraph(compiled *graph.Graph, limits Limits) (*graphProgram, error) {
	g := &graphProgram{
		limits:     limits,
		nodes:      make(map[v1alpha1.NodeID]*node, len(compiled.Nodes)),
		conditions: newExpressions(compiled.Instance.Conditions),
		instance:   newView(compiled.ResourceSchemas[graph.InstanceNodeID]),
	}
	var err error
	if g.status, err = newTemplate(compiled.Instance.Template, compiled.Instance.Variables); err != nil {
		return nil, err
	}
	for id, from := range compiled.Nodes {
		if g.nodes[v1alpha1.NodeID(id)], err = newNode(from, compiled.ResourceSchemas[id]); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func newNode(from *graph.Node, kindSchema *spec.Schema) (*node, error) {
	n := &node{
		id:         v1alpha1.NodeID(from.Meta.ID),
		namespaced: from.Meta.Namespaced,
		collection: from.Meta.Type == graph.NodeTypeCollection,
		selects:    from.Meta.Type == graph.NodeTypeExternalCollection,
		kind:       from.Template.GetKind(),
		schema:     kindSchema,
		view:       newView(kindSchema),
		include:    newExpressions(from.IncludeWhen),
		ready:      newExpressions(from.ReadyWhen),
	}
	for _, id := range slices.Sorted(slices.Values(from.Meta.Dependencies)) {
		n.dependsOn = append(n.dependsOn, v1alpha1.NodeID(id))
	}
	for _, d := range from.ForEach {
		n.dimensions = append(n.dimensions, dimension{name: d.Name, list: newExpression(d.Expression)})
	}
	var err error
	n.template, err = newTemplate(from.Template, from.Variables)
	return n, err
}

func newTemplate(object *unstructured.Unstructured, variables []*variable.ResourceField) (*template, error) {
	t := &template{object: object.Object, size: engine.JSONSize(object.Object)}
	for _, v := range variables {
		segments, err := fieldpath.Parse(v.Path)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", v.Path, err)
		}
		t.fields = append(t.fields, templateField{
			path: v.Path, segments: segments, expression: newExpression(v.Expression), perItem: v.Kind.IsIteration(),
		})
	}
	// kro finds them in the order of a map.
	slices.SortFunc(t.fields, func(a, b templateField) int { return compareSegments(a.segments, b.segments) })
	return t, nil
}

func compareSegments(a, b []fieldpath.Segment) int {
	return slices.CompareFunc(a, b, func(a, b fieldpath.Segment) int {
		if a.Index != b.Index {
			return a.Index - b.Index
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Start implements engine.Graph.
func (g *graphProgram) Start(instance *unstructured.Unstructured) (engine.Pass, error) {
	return &pass{
		graph:    g,
		instance: instance,
		schema:   g.instance.value(withoutStatus(instance.Object)),
		states:   make(map[v1alpha1.NodeID]*state, len(g.nodes)),
		left:     planTime,
		meter:    newMeter(g.limits, instance.GetAnnotations()[v1alpha1.AnnotationConsumerCluster]),
	}, nil
}

// withoutStatus is what expressions see of the instance: they may not depend on what they make.
func withoutStatus(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for key, value := range object {
		if key != "status" {
			out[key] = value
		}
	}
	return out
}
