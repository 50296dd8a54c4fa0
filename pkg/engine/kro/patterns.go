package kro

import (
	"regexp/syntax"
)

// states is about how many states a regular expression has. It is known from its parse tree, before the states are
// made: a few bytes can stand for a million of them. What can't be parsed has none; who compiles it says why.
func states(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	return max(len(pattern), statesOf(parsed))
}

func statesOf(tree *syntax.Regexp) int {
	size := 1 + len(tree.Rune)/2
	for _, below := range tree.Sub {
		size = added(size, statesOf(below))
	}
	if tree.Op == syntax.OpRepeat {
		return bounded(size, max(tree.Min, tree.Max, 1))
	}
	return size
}

// added is the sum, or something larger than maxValue.
func added(a, b int) int { return min(a+b, maxValue+1) }
