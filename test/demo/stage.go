package main

import (
	"fmt"
	"io"
	"strings"

	"go.opendefense.cloud/krop/test/demo/story"
	"go.opendefense.cloud/krop/test/testbed"
)

// width is where narration is broken into lines.
const width = 100

// stage shows the story.
type stage struct {
	out io.Writer
}

func (s stage) Chapter(title string) {
	s.print("\n%s\n%s\n", title, strings.Repeat("=", len(title)))
}

func (s stage) Command(step story.Step, typed string) {
	if step.Says != "" {
		s.print("\n%s\n", wrapped(step.Says))
	}
	s.print("\n%s$ %s\n", step.As, typed)
}

func (s stage) Output(_ story.Step, output testbed.Output) {
	for line := range strings.Lines(output.Stdout + output.Stderr) {
		s.print("  %s", line)
		if !strings.HasSuffix(line, "\n") {
			s.print("\n")
		}
	}
}

func (s stage) Outcome(step story.Step, err error) {
	switch {
	case err != nil:
		s.print("\n  NOT WHAT IT SHOULD DO: %v\n", err)
	case step.Code != 0 && step.Unchanged:
		s.print("  (exit code %d; nothing was changed anywhere)\n", step.Code)
	case step.Code != 0:
		s.print("  (exit code %d)\n", step.Code)
	case step.Unchanged:
		s.print("  (nothing was changed anywhere)\n")
	}
}

// print writes to where there is nobody to tell that it failed.
func (s stage) print(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...)
}

// wrapped breaks text into lines.
func wrapped(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
