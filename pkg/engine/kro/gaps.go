package kro

import (
	"slices"
	"strconv"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// gap is where a chain breaks off in an object.
type gap struct {
	// path is the whole chain, with the elements that it goes through by number.
	path path
	// key is the first thing that is missing.
	key string
	// at is the number of steps before it.
	at int
	// null is set if it is there, but null: that is how some API servers write what has no value yet.
	null bool
}

// missingIn is the first place where the chain breaks off in the value, nil if it doesn't.
func (p path) missingIn(value any) *gap { return p.missingFrom(value, 0) }

func (p path) missingFrom(value any, from int) *gap {
	for i := from; i < len(p.steps); i++ {
		s := p.steps[i]
		if s.each {
			return p.missingInElements(value, i)
		}
		next, ok := s.in(value)
		if !ok {
			return &gap{path: p, key: s.name(), at: i, null: s.isNull(value)}
		}
		value = next
	}
	return nil
}

func (p path) missingInElements(value any, at int) *gap {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	for n, element := range list {
		numbered := path{root: p.root, steps: slices.Clone(p.steps)}
		numbered.steps[at] = step{index: n}
		if gap := numbered.missingFrom(element, at+1); gap != nil {
			return gap
		}
	}
	return nil
}

func (s step) name() string {
	if s.index >= 0 {
		return strconv.Itoa(s.index)
	}
	return s.field
}

// in is the value of the step, false if there is none. In what is neither object nor list nothing is
// missing: there the expression fails for another reason.
func (s step) in(value any) (any, bool) {
	switch container := value.(type) {
	case map[string]any:
		next := container[s.field]
		return next, next != nil
	case []any:
		if s.index < 0 {
			return nil, true
		}
		if s.index >= len(container) {
			return nil, false
		}
		return container[s.index], true
	default:
		return nil, value != nil
	}
}

func (s step) isNull(container any) bool {
	object, _ := container.(map[string]any)
	value, found := object[s.field]
	return found && value == nil
}

// schemaless says whether what is missing isn't declared by the schema: nobody has checked that it
// is spelled right.
func (g *gap) schemaless(schema *spec.Schema) bool {
	for i, s := range g.path.steps {
		declared := declaration(schema, s)
		if declared == nil && i >= g.at {
			return true
		}
		schema = declared
	}
	return false
}

func declaration(schema *spec.Schema, s step) *spec.Schema {
	if schema == nil {
		return nil
	}
	if s.index >= 0 || s.each {
		if schema.Items != nil {
			return schema.Items.Schema
		}
		return nil
	}
	if property, ok := schema.Properties[s.field]; ok {
		return &property
	}
	return nil
}
