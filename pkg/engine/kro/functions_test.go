package kro

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
)

// unspoken are functions that nobody writes by these names: operators, and what macros are made of.
var unspoken = regexp.MustCompile(`[@_!-]|^in$`)

// TestEveryFunctionIsShown compares docs/authoring.md, whose expressions an integration test evaluates, with kro's
// environment: a function that comes with a new version of kro is to be shown too.
func TestEveryFunctionIsShown(t *testing.T) {
	text, err := os.ReadFile("../../../docs/authoring.md")
	if err != nil {
		t.Fatal(err)
	}
	env, err := krocel.DefaultEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range env.Functions() {
		if !unspoken.MatchString(name) {
			names = append(names, name)
		}
	}
	for _, macro := range env.Macros() {
		names = append(names, macro.Function())
	}
	slices.Sort(names)
	if len(names) < 100 {
		t.Fatalf("the environment has %d functions, kro has more", len(names))
	}
	for _, name := range slices.Compact(names) {
		if !shows(string(text), name) {
			t.Errorf("docs/authoring.md shows no call of %s", name)
		}
	}
}

// notEvaluated are shown by other examples than those with an arrow: they give no value outside of templates and conditions.
var notEvaluated = []string{"omit", "newCondition", "condition"}

func shows(text, function string) bool {
	call := regexp.MustCompile(`\b` + regexp.QuoteMeta(function) + `\(`)
	for line := range strings.Lines(text) {
		if (strings.Contains(line, " → ") || slices.Contains(notEvaluated, function)) && call.MatchString(line) {
			return true
		}
	}
	return false
}
