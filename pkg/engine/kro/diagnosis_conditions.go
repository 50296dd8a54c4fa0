package kro

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	krov1alpha1 "github.com/kubernetes-sigs/kro/api/v1alpha1"
	krolibrary "github.com/kubernetes-sigs/kro/pkg/cel/library"
	"github.com/kubernetes-sigs/kro/pkg/graph"
)

// conditionTypes are the types, as far as they are literals, of the conditions that the text makes.
func conditionTypes(text string) []string {
	var out []string
	for _, call := range runtimeCalls(text, "newCondition") {
		if name, found := literalEntry(call, "type"); found {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// conditionLiterals refuses what a condition can't be, and conditions of the instance that can't be read.
func (d *diagnosis) conditionLiterals(u use) {
	for _, call := range runtimeCalls(u.expression.Original, "newCondition") {
		if status, found := entry(call, "status"); found && status.Kind() == celast.LiteralKind {
			if text, isText := literalText(status); !isText || !krolibrary.IsValidConditionStatus(text) {
				d.refuseUse(u, fmt.Sprintf(`expected status "True", "False" or "Unknown", found %s`, spelled(status.AsLiteral())))
			}
		}
		if name, found := literalEntry(call, "type"); found && name == "" {
			d.refuseUse(u, "expected a type, found none")
		}
	}
	for _, call := range runtimeCalls(u.expression.Original, "condition") {
		if name, found := instanceCondition(call); found {
			if _, known := krov1alpha1.KROBuiltinConditionTypes[name]; !known {
				d.refuseUse(u, fmt.Sprintf("can't read condition %q of the instance, expected one of InstanceManaged, GraphResolved, ResourcesReady, Ready", name))
			}
		}
	}
}

// runtimeCalls are the calls of a function of runtime.
func runtimeCalls(text, function string) []celast.CallExpr {
	env, err := parsing()
	if err != nil || !strings.Contains(text, function) {
		return nil
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil
	}
	var out []celast.CallExpr
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(expr celast.Expr) {
		if expr.Kind() == celast.CallKind && expr.AsCall().IsMemberFunction() && expr.AsCall().FunctionName() == function &&
			isName(expr.AsCall().Target(), krolibrary.RuntimeVarName) {
			out = append(out, expr.AsCall())
		}
	}))
	return out
}

func isName(expr celast.Expr, name string) bool {
	return expr.Kind() == celast.IdentKind && expr.AsIdent() == name
}

// spelled is a literal as it is in an expression.
func spelled(literal ref.Val) string {
	if text, isText := literal.(types.String); isText {
		return strconv.Quote(string(text))
	}
	return fmt.Sprint(literal.Value())
}

// literalEntry is the text that a key has in the map that the call is given.
func literalEntry(call celast.CallExpr, key string) (string, bool) {
	value, found := entry(call, key)
	if !found {
		return "", false
	}
	return literalText(value)
}

// entry is what a key has in the map that the call is given.
func entry(call celast.CallExpr, key string) (celast.Expr, bool) {
	if len(call.Args()) != 1 || call.Args()[0].Kind() != celast.MapKind {
		return nil, false
	}
	for _, entry := range call.Args()[0].AsMap().Entries() {
		if name, found := literalText(entry.AsMapEntry().Key()); found && name == key {
			return entry.AsMapEntry().Value(), true
		}
	}
	return nil, false
}

func literalText(expr celast.Expr) (string, bool) {
	if expr.Kind() != celast.LiteralKind {
		return "", false
	}
	text, ok := expr.AsLiteral().(types.String)
	return string(text), ok
}

// instanceCondition is the type of the instance's condition that the call reads.
func instanceCondition(call celast.CallExpr) (string, bool) {
	if len(call.Args()) != 2 || !isName(call.Args()[0], graph.SchemaVarName) {
		return "", false
	}
	return literalText(call.Args()[1])
}
