package story

import (
	"context"

	"go.opendefense.cloud/krop/test/testbed"
)

// Chapter is a part of the story.
type Chapter struct {
	// Title of the chapter.
	Title string
	// Steps in order. Later ones build on earlier ones.
	Steps []Step
}

// Step is one command and what it must do.
type Step struct {
	// Says what it is about, in a sentence or two.
	Says string
	// As is who types it.
	As testbed.User
	// Args are those of kubectl. $name stands for what was kept as name.
	Args []string
	// Keep is the name under which what was printed is kept, as in name=$(kubectl ...).
	Keep string
	// Code is the exit code that it must have.
	Code int
	// Mentions must be found in what is printed. They are the names of things, not sentences.
	Mentions []string
	// Unchanged steps must leave every plane as it was.
	Unchanged bool
	// Holds is checked after it; nil if there is nothing more to check.
	Holds Check
}

// Check looks for something that must hold.
type Check func(ctx context.Context, scene *Scene) error

// Audience follows the story.
type Audience interface {
	// Chapter begins.
	Chapter(title string)
	// Command is about to be run, as it would be typed.
	Command(step Step, typed string)
	// Output is what it printed.
	Output(step Step, output testbed.Output)
	// Outcome is nil if the step did what it should.
	Outcome(step Step, err error)
}
