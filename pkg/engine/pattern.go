package engine

import (
	"regexp/syntax"

	"go.opendefense.cloud/krop/pkg/budget"
)

// PatternStates is about how many states a regular expression has, or something larger than any may have. It is known
// from its parse tree, before the states are made: a few bytes can stand for a million of them. What can't be parsed has
// as many as bytes; who compiles it says why.
func PatternStates(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	return max(len(pattern), statesOf(parsed))
}

// tooManyStates is larger than what is allowed, and small enough to be multiplied.
var tooManyStates = budget.ValueBytes.Default + 1

func statesOf(tree *syntax.Regexp) int {
	size := 1 + len(tree.Rune)/2
	for _, below := range tree.Sub {
		size = min(size+statesOf(below), tooManyStates)
	}
	if tree.Op == syntax.OpRepeat {
		return min(size*max(tree.Min, tree.Max, 1), tooManyStates)
	}
	return size
}
