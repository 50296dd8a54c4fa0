package story

import (
	"regexp"
	"strings"
)

// typed is the command of a step as one would type it.
func typed(step Step) string {
	words := []string{"kubectl"}
	for _, arg := range step.Args {
		words = append(words, quoted(arg))
	}
	command := strings.Join(words, " ")
	if step.Keep != "" {
		return step.Keep + "=$(" + command + ")"
	}
	return command
}

// quoted puts an argument in quotes where a shell needs them. What is kept is typed as $name, outside of quotes.
func quoted(arg string) string {
	if !strings.ContainsAny(arg, " \t\n'\"{}[]()*?;&|<>`\\") {
		return arg
	}
	return "'" + keptName.ReplaceAllString(strings.ReplaceAll(arg, "'", `'\''`), "'$0'") + "'"
}

var keptName = regexp.MustCompile(`\$[a-z][a-z0-9]*`)
