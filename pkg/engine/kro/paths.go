package kro

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
)

// path is a chain of selections in an expression: server.status.ingress[0].ip.
type path struct {
	root  string
	steps []step
}

// step is a field, an index, or each element of a list in turn.
type step struct {
	field string
	index int // -1 for fields
	each  bool
}

func (p path) with(s step) path {
	return path{root: p.root, steps: append(slices.Clone(p.steps), s)}
}

// String is the path without its root.
func (p path) String() string {
	var b strings.Builder
	for _, s := range p.steps {
		switch {
		case s.each:
			b.WriteString("[*]")
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.ContainsAny(s.field, `.[]"`):
			fmt.Fprintf(&b, "[%q]", s.field)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.field)
		}
	}
	return b.String()
}

// parsing is the environment that expressions are parsed in to find their paths: the macros matter,
// the names don't.
var parsing = sync.OnceValues(func() (*cel.Env, error) { return krocel.DefaultEnvironment() })

// paths are the longest chains of selections that evaluating the text may follow. Chains behind an
// optional selection are left out: they may be missing.
func paths(text string) []path {
	env, err := parsing()
	if err != nil {
		return nil
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil
	}
	finder := &pathFinder{}
	finder.visit(parsed.NativeRep().Expr(), nil)
	return finder.found
}

type pathFinder struct{ found []path }

// bindings are the chains that local variables stand for; nil for those that stand for none.
type bindings map[string]*path

func (b bindings) with(name string, chain *path) bindings {
	out := make(bindings, len(b)+1)
	for key, value := range b {
		out[key] = value
	}
	out[name] = chain
	return out
}

// visit records the chains in the expression.
func (f *pathFinder) visit(expr celast.Expr, local bindings) {
	if chain, isChain := f.chain(expr, local); isChain {
		if chain != nil {
			f.found = append(f.found, *chain)
		}
		return
	}
	switch expr.Kind() {
	case celast.SelectKind:
		f.visit(expr.AsSelect().Operand(), local)
	case celast.CallKind:
		if call := expr.AsCall(); call.IsMemberFunction() {
			f.visit(call.Target(), local)
		}
		for _, arg := range expr.AsCall().Args() {
			f.visit(arg, local)
		}
	case celast.ListKind:
		for _, element := range expr.AsList().Elements() {
			f.visit(element, local)
		}
	case celast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			f.visit(entry.AsMapEntry().Key(), local)
			f.visit(entry.AsMapEntry().Value(), local)
		}
	case celast.ComprehensionKind:
		f.comprehension(expr.AsComprehension(), local)
	}
}

// chain is the chain that the expression is, if it is one; nil if it is one of a local variable that
// stands for none.
func (f *pathFinder) chain(expr celast.Expr, local bindings) (*path, bool) {
	switch expr.Kind() {
	case celast.IdentKind:
		name := expr.AsIdent()
		if bound, isLocal := local[name]; isLocal {
			return bound, true
		}
		return &path{root: name}, true
	case celast.SelectKind:
		selection := expr.AsSelect()
		operand, isChain := f.chain(selection.Operand(), local)
		if !isChain || operand == nil || selection.IsTestOnly() {
			return operand, isChain
		}
		longer := operand.with(step{field: selection.FieldName(), index: -1})
		return &longer, true
	case celast.CallKind:
		return f.indexed(expr.AsCall(), local)
	default:
		return nil, false
	}
}

// indexed is the chain of an index: list[0], map["key"]. Optional ones end it.
func (f *pathFinder) indexed(call celast.CallExpr, local bindings) (*path, bool) {
	switch call.FunctionName() {
	case operators.Index:
	case operators.OptSelect, operators.OptIndex:
		return f.chain(call.Args()[0], local)
	default:
		return nil, false
	}
	operand, isChain := f.chain(call.Args()[0], local)
	if !isChain || operand == nil {
		return operand, isChain
	}
	index := call.Args()[1]
	if index.Kind() != celast.LiteralKind {
		f.visit(index, local)
		return operand, true
	}
	var longer path
	switch key := index.AsLiteral().(type) {
	case types.String:
		longer = operand.with(step{field: string(key), index: -1})
	case types.Int:
		longer = operand.with(step{index: int(key)})
	default:
		return operand, true
	}
	return &longer, true
}

// comprehension follows the variables of map(), filter() and so on to the elements they stand for,
// and that of cel.bind() to its value.
func (f *pathFinder) comprehension(c celast.ComprehensionExpr, local bindings) {
	f.visit(c.IterRange(), local)
	f.visit(c.AccuInit(), local)
	initial, _ := f.chain(c.AccuInit(), local)
	inner := local.with(c.AccuVar(), initial)
	var element *path
	if list, isChain := f.chain(c.IterRange(), local); isChain && list != nil {
		each := list.with(step{index: -1, each: true})
		element = &each
	}
	if c.HasIterVar2() {
		inner = inner.with(c.IterVar(), nil).with(c.IterVar2(), element)
	} else {
		inner = inner.with(c.IterVar(), element)
	}
	f.visit(c.LoopCondition(), inner)
	f.visit(c.LoopStep(), inner)
	f.visit(c.Result(), inner)
}
