package kro

import (
	"fmt"
	"regexp/syntax"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	// searchAll is the function that looks for all that matches, and upTo its overload with a limit.
	searchAll = "findAll"
	upTo      = "string_find_all_string_int"

	// firstMatches is how many matches a search pays for at first.
	firstMatches = 32
)

// checkPattern refuses a regular expression that is written in the expression, if it is too large or wrong.
func checkPattern(call interpreter.InterpretableCall) error {
	switch call.Function() {
	case "matches", "find", searchAll:
	default:
		return nil
	}
	if len(call.Args()) < 2 {
		return nil
	}
	constant, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return nil
	}
	pattern, ok := constant.Value().(types.String)
	if !ok {
		return nil
	}
	if _, err := syntax.Parse(string(pattern), syntax.Perl); err != nil {
		return fmt.Errorf("illegal regular expression: %w", err)
	}
	if matching([]ref.Val{types.String(""), pattern}) == manyStates {
		return tooLarge(manyStates)
	}
	return nil
}

// search is a call of findAll. For each match it may look at all that follows, as "a.*b|a" does in "aaaa": what it
// takes is only known with the number of matches. So it pays for some of them, and again if there are more.
type search struct {
	pricedCall
	find functions.FunctionOp
}

func newSearch(call pricedCall) (interpreter.InterpretableV2, error) {
	bound, err := implementations()
	if err != nil {
		return nil, err
	}
	find := bound[binding{searchAll, upTo}]
	if find == nil {
		return nil, errUnbounded
	}
	return &search{pricedCall: call, find: find}, nil
}

// Exec implements interpreter.InterpretableV2.
func (s *search) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args, failed := s.evaluated(frame)
	if failed != nil {
		return failed
	}
	meter := meterOf(frame)
	if cost := matching(args); cost > maxValue {
		meter.spend(1)
		return types.NewErr("%s: %w", searchAll, tooLarge(cost))
	}
	meter.spend(1 + matching(args)/bytesPerUnit)
	each := matching([]ref.Val{types.String(text(args, 0)[:reach(args)]), args[1]}) / bytesPerUnit
	limit, ok := most(args)
	if !ok {
		return types.LabelErrNode(s.ID(), s.operation(args...))
	}
	for paid, wanted := 0, firstMatches; ; wanted *= 2 {
		wanted = min(wanted, limit)
		meter.spend((wanted - paid) * each)
		paid = wanted
		found := s.find(args[0], args[1], types.Int(wanted))
		if wanted == limit || types.IsUnknownOrError(found) || size(found) < wanted*elementSize {
			return types.LabelErrNode(s.ID(), found)
		}
	}
}

// Eval implements interpreter.Interpretable.
func (s *search) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}

// most is how many matches there can be at most: no more than are asked for, and one before each character. It is not ok
// if what is asked for is no number.
func most(args []ref.Val) (limit int, ok bool) {
	all := len(text(args, 0)) + 1
	if len(args) < 3 {
		return all, true
	}
	asked, ok := args[2].(types.Int)
	if !ok || asked < 0 {
		return all, ok
	}
	return int(min(asked, types.Int(all))), true
}

// reach is about how far behind its beginning a search for one match may look.
func reach(args []ref.Val) int {
	all := len(text(args, 0))
	parsed, err := syntax.Parse(text(args, 1), syntax.Perl)
	if err != nil {
		return 0
	}
	return min(all, longest(parsed))
}

// utf8Bytes is how many bytes a character has at most.
const utf8Bytes = 4

// longest is how many bytes the longest match may have, or something larger than maxValue.
func longest(tree *syntax.Regexp) int {
	switch tree.Op {
	case syntax.OpLiteral:
		return len(tree.Rune) * utf8Bytes
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8Bytes
	case syntax.OpStar, syntax.OpPlus:
		return maxValue + 1
	case syntax.OpRepeat:
		if tree.Max < 0 {
			return maxValue + 1
		}
		return bounded(longest(tree.Sub[0]), tree.Max)
	}
	length := 0
	for _, below := range tree.Sub {
		if tree.Op == syntax.OpAlternate {
			length = max(length, longest(below))
		} else {
			length = added(length, longest(below))
		}
	}
	return length
}
