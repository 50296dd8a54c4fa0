package kro

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	"k8s.io/kube-openapi/pkg/validation/spec"
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

// gap is where a chain breaks off in an object.
type gap struct {
	// path is the whole chain, with the elements that it goes through by number.
	path path
	// key is the first thing that is missing.
	key string
	// at is the number of steps before it.
	at int
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
			return &gap{path: p, key: s.name(), at: i}
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
