package engine

import (
	"regexp"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Rule is what is to be known of a rule of a schema (x-kubernetes-validations) before it is evaluated. What it costs is
// counted by Kubernetes' libraries, but not that of regular expressions and of quantities: those can be short, and take
// hours.
type Rule struct {
	// States are those of the regular expressions in it. One in a loop counts loopFactor times.
	States int
	// Searches is a function whose regular expression isn't written in the rule, if there is one.
	Searches string
	// Quantities says that it reads quantities.
	Quantities bool
	// Makes is a function in it that makes text, or a text with a large exponent, if there is one.
	Makes string
}

// loopFactor is for what a loop does between two looks at whether there is still time.
const loopFactor = 10

var (
	searching  = []string{"matches", "find", "findAll"}
	quantities = []string{"quantity", "isQuantity"}
	makers     = []string{
		"string", "join", "format", "replace", "substring", "charAt", "split", "trim", "reverse",
		"lowerAscii", "upperAscii", "strings.quote", "base64.encode", "base64.decode", "find", "findAll",
	}
	largeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3}`)
)

// HasLargeExponent says whether reading the text as a quantity would take its exponent's many digits.
func HasLargeExponent(text string) bool { return largeExponent.MatchString(text) }

var ruleEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
})

// ReadRule reads a rule. One that can't be parsed has nothing in it: whoever compiles it says what is wrong.
func ReadRule(text string) (Rule, error) {
	env, err := ruleEnvironment()
	if err != nil {
		return Rule{}, err
	}
	var rule Rule
	if parsed, issues := env.Parse(text); issues.Err() == nil {
		rule.read(parsed.NativeRep().Expr(), 1)
	}
	return rule, nil
}

// read looks at an expression that is in a loop if the factor isn't 1.
func (r *Rule) read(expr celast.Expr, factor int) {
	switch expr.Kind() {
	case celast.CallKind:
		r.call(expr.AsCall(), factor)
	case celast.ComprehensionKind:
		loop := expr.AsComprehension()
		r.readAll(factor, loop.IterRange(), loop.AccuInit(), loop.Result())
		r.readAll(loopFactor, loop.LoopCondition(), loop.LoopStep())
	case celast.SelectKind:
		r.read(expr.AsSelect().Operand(), factor)
	case celast.ListKind:
		r.readAll(factor, expr.AsList().Elements()...)
	case celast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			r.readAll(factor, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case celast.LiteralKind:
		if text, ok := expr.AsLiteral().(types.String); ok && HasLargeExponent(string(text)) {
			r.Makes = string(text)
		}
	}
}

func (r *Rule) readAll(factor int, exprs ...celast.Expr) {
	for _, expr := range exprs {
		r.read(expr, factor)
	}
}

func (r *Rule) call(call celast.CallExpr, factor int) {
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	name := call.FunctionName()
	switch {
	case slices.Contains(quantities, name):
		r.Quantities = true
	case name == operators.Add && !slices.ContainsFunc(args, isListLiteral), slices.Contains(makers, name):
		r.Makes = name
	}
	if slices.Contains(searching, name) && len(args) > 1 {
		r.search(name, args[1], factor)
	}
	r.readAll(factor, args...)
}

// isListLiteral is how a loop adds to what it makes.
func isListLiteral(expr celast.Expr) bool { return expr.Kind() == celast.ListKind }

func (r *Rule) search(name string, pattern celast.Expr, factor int) {
	if pattern.Kind() == celast.LiteralKind {
		if text, ok := pattern.AsLiteral().(types.String); ok {
			r.States = min(r.States+factor*PatternStates(string(text)), tooManyStates)
			return
		}
	}
	r.Searches = name
}
