package kro

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"github.com/kubernetes-sigs/kro/pkg/cel/sentinels"
	"github.com/kubernetes-sigs/kro/pkg/graph/fieldpath"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Desired implements engine.Pass.
func (p *pass) Desired(id v1alpha1.NodeID) ([]*unstructured.Unstructured, error) {
	s := p.state(id)
	if s.desired == nil {
		s.desired = &answer{}
		s.desired.err = p.evaluate(id, func() (err error) {
			s.objects, err = p.render(id)
			return err
		})
	}
	return s.objects, s.desired.err
}

func (p *pass) render(id v1alpha1.NodeID) ([]*unstructured.Unstructured, error) {
	n, err := p.node(id)
	if err != nil {
		return nil, err
	}
	for _, dependency := range n.dependsOn {
		if err := p.available(dependency); err != nil {
			return nil, err
		}
	}
	scopes, err := p.combinations(n)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(scopes))
	shared := make(map[string]sharedValue)
	for _, scope := range scopes {
		object, err := p.renderOne(n, scope, shared)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// sharedValue is a value that is the same in all objects of a collection.
type sharedValue struct {
	value any
	size  int
}

// renderOne fills in the template. Values that don't depend on the item are evaluated once, and kept
// in shared.
func (p *pass) renderOne(n *node, scope *scope, shared map[string]sharedValue) (*unstructured.Unstructured, error) {
	if err := p.meter.render(n.template.size); err != nil {
		return nil, &engine.ExpressionError{Node: n.id, Message: err.Error(), Cause: err}
	}
	object := runtime.DeepCopyJSON(n.template.object)
	omitted := false
	for _, field := range n.template.fields {
		value, err := p.fieldValue(n, field, scope, shared)
		if err != nil {
			return nil, err
		}
		omitted = omitted || holdsOmit(value)
		if err := put(object, field.segments, value); err != nil {
			return nil, p.failed(n.id, field.expression, fmt.Errorf("at %s: %w", field.path, err))
		}
	}
	if omitted {
		object, _ = withoutOmitted(object).(map[string]any)
	}
	out := &unstructured.Unstructured{Object: object}
	if n.namespaced && !n.selects && out.GetNamespace() == "" {
		out.SetNamespace(p.instance.GetNamespace())
	}
	return out, nil
}

func (p *pass) fieldValue(n *node, field templateField, scope *scope, shared map[string]sharedValue) (any, error) {
	if known, ok := shared[field.path]; ok && !field.perItem {
		return p.paid(n, field, copied(known.value), known.size)
	}
	result, err := field.expression.eval(scope)
	if err != nil {
		return nil, p.failure(n.id, field.expression, scope, err)
	}
	value, size, err := sized(result, n.empty())
	if err != nil {
		return nil, p.failed(n.id, field.expression, err)
	}
	if n.collection && !field.perItem {
		shared[field.path] = sharedValue{value, size}
		value = copied(value)
	}
	return p.paid(n, field, value, size)
}

// empty is what an optional value that there isn't becomes: the field is left out, as by omit(). A label selector
// would then select more than it should, so that there it is null.
func (n *node) empty() any {
	if n.selects {
		return nil
	}
	return sentinels.Omit{}
}

// paid counts what a value adds to what is in memory.
func (p *pass) paid(n *node, field templateField, value any, size int) (any, error) {
	if err := p.meter.render(size); err != nil {
		return nil, p.failed(n.id, field.expression, err)
	}
	return value, nil
}

// combinations gives a scope for each object: one, or one per combination of the forEach values, the
// last axis changing fastest.
func (p *pass) combinations(n *node) ([]*scope, error) {
	scopes := []*scope{{pass: p}}
	for _, axis := range n.dimensions {
		values, err := p.axis(n, axis)
		if err != nil {
			return nil, err
		}
		if err := p.graph.limits.Check(budget.ForEachItems, len(scopes)*len(values)); err != nil {
			return nil, p.failed(n.id, axis.list, err)
		}
		next := make([]*scope, 0, len(scopes)*len(values))
		for _, outer := range scopes {
			for _, value := range values {
				local := make(map[string]any, len(outer.local)+1)
				for name, bound := range outer.local {
					local[name] = bound
				}
				local[axis.name] = value
				next = append(next, &scope{pass: p, local: local})
			}
		}
		scopes = next
	}
	return scopes, nil
}

func (p *pass) axis(n *node, axis dimension) ([]any, error) {
	scope := &scope{pass: p}
	result, err := axis.list.eval(scope)
	if err != nil {
		return nil, p.failure(n.id, axis.list, scope, err)
	}
	list, ok := result.(traits.Lister)
	if !ok {
		return nil, p.failed(n.id, axis.list, fmt.Errorf("it gives %s, expected a list", result.Type().TypeName()))
	}
	if length, ok := list.Size().(types.Int); ok {
		if err := p.graph.limits.Check(budget.ForEachItems, int(length)); err != nil {
			return nil, p.failed(n.id, axis.list, err)
		}
	}
	var values []any
	for it := list.Iterator(); it.HasNext() == types.True; {
		values = append(values, it.Next())
	}
	return values, nil
}

// put sets the value at a place that the template has.
func put(object any, segments []fieldpath.Segment, value any) error {
	for i, segment := range segments {
		last := i == len(segments)-1
		switch container := object.(type) {
		case map[string]any:
			if last {
				container[segment.Name] = value
				return nil
			}
			object = container[segment.Name]
		case []any:
			if segment.Index < 0 || segment.Index >= len(container) {
				return fmt.Errorf("no element %d", segment.Index)
			}
			if last {
				container[segment.Index] = value
				return nil
			}
			object = container[segment.Index]
		default:
			return fmt.Errorf("no field %q", segment.Name)
		}
	}
	return nil
}

func holdsOmit(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			if holdsOmit(element) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if holdsOmit(element) {
				return true
			}
		}
	default:
		return sentinels.IsOmit(value)
	}
	return false
}

// withoutOmitted takes out what omit() stands for: the field or element.
func withoutOmitted(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			if sentinels.IsOmit(element) {
				delete(v, key)
			} else {
				v[key] = withoutOmitted(element)
			}
		}
		return v
	case []any:
		kept := make([]any, 0, len(v))
		for _, element := range v {
			if !sentinels.IsOmit(element) {
				kept = append(kept, withoutOmitted(element))
			}
		}
		return kept
	default:
		return value
	}
}

// copied is a copy of what native gave.
func copied(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, element := range v {
			out[key] = copied(element)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = copied(element)
		}
		return out
	default:
		return v
	}
}
