package kro

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/cel/sentinels"
	"github.com/kubernetes-sigs/kro/pkg/graph"

	"go.opendefense.cloud/krop/pkg/engine"
)

// expression is a compiled expression. Immutable.
type expression struct {
	program cel.Program
	// source is what the author wrote, and text what was compiled: they differ for strings that have
	// expressions in them.
	source, text string
	// references are the names it reads: resources, schema, iterators, each, runtime.
	references []string
	// paths are the chains of selections in it. They are needed only to explain a failure.
	paths func() []path
}

func newExpression(compiled *krocel.Expression) *expression {
	return &expression{
		program:    compiled.Program,
		source:     compiled.UserExpression(),
		text:       compiled.Original,
		references: slices.Sorted(slices.Values(compiled.References)),
		paths:      sync.OnceValue(func() []path { return paths(compiled.Original) }),
	}
}

func newExpressions(compiled []*krocel.Expression) []*expression {
	out := make([]*expression, 0, len(compiled))
	for _, e := range compiled {
		out = append(out, newExpression(e))
	}
	return out
}

// eval evaluates the expression. The error is of CEL or of the budget, and says nothing of where it
// comes from.
func (e *expression) eval(scope *scope) (ref.Val, error) {
	meter := &scope.pass.meter
	meter.next()
	value, _, err := e.program.ContextEval(scope.pass.ctx, scope)
	var cancelled interpreter.EvalCancelledError
	switch {
	case err == nil:
		return value, nil
	case errors.As(err, &cancelled) && scope.pass.timedOut(), strings.Contains(err.Error(), "operation interrupted"):
		return nil, scope.pass.late()
	case errors.As(err, &cancelled):
		return nil, meter.cancelled()
	default:
		return nil, err
	}
}

// missing are the words by which CEL says that a value isn't there; any other error is a failure.
var missing = []string{"no such key", "no such field", "no such attribute", "index out of bounds"}

func isMissing(err error) bool {
	return slices.ContainsFunc(missing, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// ofNull are the words by which CEL says, among other things, that it can't do with null what was asked.
var ofNull = []string{"types.Null", "no such overload"}

func mayBeOfNull(err error) bool {
	return slices.ContainsFunc(ofNull, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// scope resolves the names in an expression: the instance, observed resources, and what is local to
// the expression.
type scope struct {
	pass  *pass
	local map[string]any
}

// ResolveName implements cel.Activation.
func (s *scope) ResolveName(name string) (any, bool) {
	if value, ok := s.local[name]; ok {
		return value, true
	}
	return s.pass.resolve(name)
}

// Parent implements cel.Activation.
func (s *scope) Parent() cel.Activation { return nil }

// boolean is the value of a condition. An empty optional is false, as in kro.
func boolean(value ref.Val) (bool, error) {
	out, err := native(value)
	switch v := out.(type) {
	case bool:
		return v, nil
	case nil, sentinels.Omit:
		return false, err
	default:
		return false, fmt.Errorf("it gives %s, expected bool", value.Type().TypeName())
	}
}

var _ engine.Graph = (*graphProgram)(nil)

// instanceFields are the fields of the instance that the expression reads, by itself or through the
// forEach variables of its node (nil for expressions of the status).
func (e *expression) instanceFields(n *node) []string {
	var out []string
	for _, chain := range e.paths() {
		if chain.root == graph.SchemaVarName {
			if field := chain.String(); field != "" {
				out = append(out, field)
			}
			continue
		}
		if axis := n.dimension(chain.root); axis != nil {
			out = append(out, axis.list.instanceFields(nil)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
