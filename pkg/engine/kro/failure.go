package kro

import (
	"strings"

	"github.com/google/cel-go/common/types/ref"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// failed is the error of an expression that can't succeed.
func (p *pass) failed(id v1alpha1.NodeID, e *expression, err error) error {
	return &engine.ExpressionError{Node: id, Expression: e.source, Fields: e.instanceFields(p.graph.nodes[id]), Message: err.Error(), Cause: err}
}

// failure is the error of an expression that didn't evaluate: *engine.Waiting if what it lacks is
// for somebody to provide, *engine.ExpressionError if the instance lacks it, or if nothing is lacking.
func (p *pass) failure(id v1alpha1.NodeID, e *expression, scope *scope, err error) error {
	gaps := p.gaps(e, scope, p.graph.nodes[id])
	if !isMissing(err) {
		if null := p.awaitedNull(gaps, err); null != nil {
			return p.lacking(id, e, null)
		}
		return p.failed(id, e, err)
	}
	for _, named := range []bool{true, false} {
		for _, gap := range gaps {
			if !named || namesKey(err, gap.key) {
				return p.lacking(id, e, gap)
			}
		}
	}
	for _, name := range e.references {
		if _, isNode := p.graph.nodes[v1alpha1.NodeID(name)]; isNode {
			return &engine.Waiting{Node: v1alpha1.NodeID(name), Expression: e.source}
		}
	}
	return p.failed(id, e, err)
}

// awaitedNull is a value of another resource that is null, if that can be why the expression failed: null is for
// somebody to replace, as what is missing is.
func (p *pass) awaitedNull(gaps []*gap, err error) *gap {
	if !mayBeOfNull(err) {
		return nil
	}
	for _, gap := range gaps {
		if gap.null && p.graph.nodes[v1alpha1.NodeID(gap.path.root)] != nil {
			return gap
		}
	}
	return nil
}

// namesKey says whether CEL's error is about this key. It tells apart the chain that failed from one
// that the expression hasn't followed.
func namesKey(err error, key string) bool {
	return strings.HasSuffix(err.Error(), ": "+key) || strings.Contains(err.Error(), ": "+key+" ")
}

// gaps are the places where the expression's chains break off in what they are evaluated on.
func (p *pass) gaps(e *expression, scope *scope, n *node) []*gap {
	var out []*gap
	for _, chain := range e.paths() {
		value, known := p.raw(chain.root, scope)
		if !known {
			if _, isNode := p.graph.nodes[v1alpha1.NodeID(chain.root)]; isNode {
				out = append(out, &gap{path: chain, key: chain.root, at: -1})
			}
			continue
		}
		if gap := chain.missingIn(value); gap != nil {
			gap.path = n.through(gap.path)
			out = append(out, gap)
		}
	}
	return out
}

// through writes a chain that starts at a forEach variable as one that starts at what the variable
// is taken from.
func (n *node) through(chain path) path {
	axis := n.dimension(chain.root)
	if axis == nil {
		return chain
	}
	sources := axis.list.paths()
	if len(sources) == 0 {
		return chain
	}
	source := sources[0].with(step{index: -1, each: true})
	source.steps = append(source.steps, chain.steps...)
	return source
}

// raw is the value of a name in an expression as JSON, false if it has none.
func (p *pass) raw(name string, scope *scope) (any, bool) {
	if name == graph.SchemaVarName {
		return p.instance.Object, true
	}
	if local, ok := scope.local[name]; ok {
		if value, ok := local.(ref.Val); ok {
			return value.Value(), true
		}
		return local, true
	}
	id := v1alpha1.NodeID(name)
	s := p.states[id]
	if s == nil || s.value == nil {
		return nil, false
	}
	if !p.graph.nodes[id].isList() {
		return s.observed[0].Object, true
	}
	items := make([]any, 0, len(s.observed))
	for _, object := range s.observed {
		items = append(items, object.Object)
	}
	return items, true
}

// lacking is the error for one gap.
func (p *pass) lacking(id v1alpha1.NodeID, e *expression, gap *gap) error {
	root := v1alpha1.NodeID(gap.path.root)
	n := p.graph.nodes[root]
	switch {
	case n == nil:
		return &engine.ExpressionError{Node: id, Expression: e.source, Fields: e.instanceFields(p.graph.nodes[id]),
			Message: gap.path.String() + " is not set"}
	case gap.at < 0:
		if err := p.available(root); err != nil {
			return err
		}
		return &engine.Waiting{Node: root}
	default:
		return &engine.Waiting{Node: root, Path: gap.path.String(), Expression: e.source, Schemaless: gap.schemaless(n.observedSchema())}
	}
}

// unready is the error of a readyWhen that didn't evaluate on the object.
func (p *pass) unready(n *node, condition *expression, object *unstructured.Unstructured, err error) error {
	if object == nil { // it is of the list as a whole
		return p.failure(n.id, condition, &scope{pass: p}, err)
	}
	for _, chain := range condition.paths() {
		gap := chain.missingIn(object.Object)
		if gap == nil {
			continue
		}
		if isMissing(err) && namesKey(err, gap.key) || gap.null && mayBeOfNull(err) {
			return &engine.Waiting{Node: n.id, Path: gap.path.String(), Expression: condition.source, Schemaless: gap.schemaless(n.schema)}
		}
	}
	if !isMissing(err) {
		return p.failed(n.id, condition, err)
	}
	return &engine.Waiting{Node: n.id, Expression: condition.source, ReadyWhen: true}
}
