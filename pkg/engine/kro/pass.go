package kro

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubernetes-sigs/kro/pkg/graph"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// pass is one evaluation of a graph. See engine.Pass for what callers may do.
type pass struct {
	graph    *graphProgram
	instance *unstructured.Unstructured
	// schema is the instance as expressions see it.
	schema any
	states map[v1alpha1.NodeID]*state
	meter  meter
	// ctx ends the evaluation of the node at hand.
	ctx context.Context
	// left is the time that there is for the steps to come.
	left time.Duration
}

// state is what a pass has found out about one node. Answers are kept, so that a graph with many
// paths between two nodes takes no longer than one with a single path.
type state struct {
	ignored *answer
	desired *answer
	ready   *answer
	objects []*unstructured.Unstructured
	// reference is what an externalRef was rendered to.
	reference *engine.Reference
	observed  []*unstructured.Unstructured
	// seen says that observed was given.
	seen bool
	// elements are what readiness is of each object of a list.
	elements []error
	// value is what other nodes' expressions see; nil until something is observed.
	value any
}

// answer is a yes or no, or why there is none.
type answer struct {
	yes bool
	err error
}

func (p *pass) state(id v1alpha1.NodeID) *state {
	s := p.states[id]
	if s == nil {
		s = &state{}
		p.states[id] = s
	}
	return s
}

func (p *pass) node(id v1alpha1.NodeID) (*node, error) {
	n := p.graph.nodes[id]
	if n == nil {
		return nil, fmt.Errorf("the program has no resource %q", id)
	}
	return n, nil
}

// resolve is the value of a name in an expression.
func (p *pass) resolve(name string) (any, bool) {
	if name == graph.SchemaVarName {
		return p.schema, true
	}
	if s := p.states[v1alpha1.NodeID(name)]; s != nil && s.value != nil {
		return s.value, true
	}
	return nil, false
}

// evaluate runs one step of a pass within its time, and makes an error of a panic: expressions are
// the author's, and their input is the consumer's.
func (p *pass) evaluate(id v1alpha1.NodeID, step func() error) (err error) {
	if p.ctx != nil {
		return step()
	}
	if p.left <= 0 {
		err := p.late()
		return &engine.ExpressionError{Node: id, Message: err.Error(), Cause: err}
	}
	stop := p.begin()
	defer func() {
		stop()
		p.ctx = nil
		if cause := recover(); cause != nil {
			err = &engine.ExpressionError{Node: id, Message: fmt.Sprintf("internal error: %v", cause)}
		}
	}()
	return step()
}

// Ignored implements engine.Pass.
func (p *pass) Ignored(id v1alpha1.NodeID) (bool, error) {
	s := p.state(id)
	if s.ignored == nil {
		s.ignored = &answer{}
		s.ignored.err = p.evaluate(id, func() (err error) {
			s.ignored.yes, err = p.excluded(id)
			return err
		})
	}
	return s.ignored.yes, s.ignored.err
}

func (p *pass) excluded(id v1alpha1.NodeID) (bool, error) {
	n, err := p.node(id)
	if err != nil {
		return false, err
	}
	// One dependency that is ignored decides, whatever the others wait for.
	var undecided error
	for _, dependency := range n.dependsOn {
		ignored, err := p.Ignored(dependency)
		if ignored {
			return true, nil
		}
		if err != nil && undecided == nil {
			undecided = reason(dependency, err)
		}
	}
	// Its own conditions decide too, as far as they read nothing that is to be awaited.
	for _, condition := range n.include {
		if undecided != nil && p.readsNodes(condition) {
			continue
		}
		included, err := p.included(n, condition)
		if err != nil || !included {
			return !included && err == nil, err
		}
	}
	return false, undecided
}

func (p *pass) readsNodes(e *expression) bool {
	return slices.ContainsFunc(e.references, func(name string) bool { return p.graph.nodes[v1alpha1.NodeID(name)] != nil })
}

// included evaluates an includeWhen, once the resources that it reads are ready.
func (p *pass) included(n *node, condition *expression) (bool, error) {
	for _, name := range condition.references {
		if _, isNode := p.graph.nodes[v1alpha1.NodeID(name)]; !isNode {
			continue
		}
		if err := p.available(v1alpha1.NodeID(name)); err != nil {
			return false, err
		}
	}
	scope := &scope{pass: p}
	value, err := condition.eval(scope)
	if err != nil {
		return false, p.failure(n.id, condition, scope, err)
	}
	included, err := boolean(value)
	if err != nil {
		return false, p.failed(n.id, condition, err)
	}
	return included, nil
}

// available is nil if the node's values may be used: it exists, and it is ready.
func (p *pass) available(id v1alpha1.NodeID) error {
	s := p.state(id)
	if s.ignored != nil && s.ignored.err != nil {
		return reason(id, s.ignored.err)
	}
	if s.desired != nil && s.desired.err != nil {
		return reason(id, s.desired.err)
	}
	if err := p.Ready(id); err != nil {
		return reason(id, err)
	}
	return nil
}

// reason is what a dependent waits for: what the node itself waits for, or else the node.
func reason(id v1alpha1.NodeID, err error) error {
	var waiting *engine.Waiting
	if errors.As(err, &waiting) {
		return waiting
	}
	return &engine.Waiting{Node: id}
}

// Observe implements engine.Pass.
func (p *pass) Observe(id v1alpha1.NodeID, objects []*unstructured.Unstructured) {
	n := p.graph.nodes[id]
	if n == nil {
		return
	}
	s := p.state(id)
	s.observed, s.seen = objects, true
	switch {
	case n.isList():
		items := make([]any, 0, len(objects))
		for _, object := range objects {
			items = append(items, n.view.value(object.Object))
		}
		s.value = items
	case len(objects) > 0:
		s.value = n.view.value(objects[0].Object)
	}
}

// Ready implements engine.Pass.
func (p *pass) Ready(id v1alpha1.NodeID) error {
	s := p.state(id)
	if s.ready == nil {
		s.ready = &answer{}
		s.ready.err = p.evaluate(id, func() error { return p.checkReady(id, s) })
	}
	return s.ready.err
}

// ReadyElements implements engine.Pass.
func (p *pass) ReadyElements(id v1alpha1.NodeID) []error { return p.state(id).elements }

func (p *pass) checkReady(id v1alpha1.NodeID, s *state) error {
	n, err := p.node(id)
	if err != nil {
		return err
	}
	if s.value == nil && s.seen && s.reference != nil {
		return &engine.Waiting{Node: id, Missing: n.missing(s.reference)}
	}
	if s.value == nil || len(s.observed) < len(s.objects) {
		return &engine.Waiting{Node: id}
	}
	if n.selects {
		return p.checkSelected(n, s)
	}
	if !n.collection {
		return p.ready(n, string(id), s.observed[0])
	}
	return p.checkElements(n, s)
}

// checkElements looks at all objects of a list, so that each has its own answer. The list's is that of the first which
// isn't ready.
func (p *pass) checkElements(n *node, s *state) error {
	var first error
	for i, object := range s.observed {
		err := ofElement(i, p.ready(n, graph.EachVarName, object))
		var waiting *engine.Waiting
		if err != nil && !errors.As(err, &waiting) {
			return err
		}
		if s.elements = append(s.elements, err); first == nil {
			first = err
		}
	}
	return first
}

// ready evaluates every readyWhen on one object, which they know by a name.
func (p *pass) ready(n *node, name string, object *unstructured.Unstructured) error {
	scope := &scope{pass: p, local: map[string]any{name: n.view.value(object.Object)}}
	for _, condition := range n.ready {
		if err := p.holds(n, condition, scope, object); err != nil {
			return err
		}
	}
	return nil
}

// holds evaluates one readyWhen.
func (p *pass) holds(n *node, condition *expression, scope *scope, object *unstructured.Unstructured) error {
	value, err := condition.eval(scope)
	if err != nil {
		return p.unready(n, condition, object, err)
	}
	ready, err := boolean(value)
	switch {
	case err != nil:
		return p.failed(n.id, condition, err)
	case !ready:
		return &engine.Waiting{Node: n.id, Expression: condition.source, ReadyWhen: true}
	default:
		return nil
	}
}
