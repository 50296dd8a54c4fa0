package integration

import (
	"testing"

	"go.opendefense.cloud/krop/test/demo/story"
	"go.opendefense.cloud/krop/test/testbed"
)

// TestStoryOfProviderAndConsumers plays what make demo shows.
func TestStoryOfProviderAndConsumers(t *testing.T) {
	play(t, bed)
}

// play plays the whole story in a test bed.
func play(t *testing.T, in *testbed.Bed) {
	t.Helper()
	scene, err := story.NewScene(in, checkout)
	if err != nil {
		t.Fatal(err)
	}
	if err := story.Play(t.Context(), scene, listener{t}, story.Chapters()...); err != nil {
		t.Fatal(err)
	}
}

// listener keeps what is said in the log of the test.
type listener struct{ t *testing.T }

func (l listener) Chapter(title string) { l.t.Log(title) }

func (l listener) Command(step story.Step, typed string) { l.t.Logf("%s$ %s", step.As, typed) }

func (l listener) Output(_ story.Step, output testbed.Output) { l.t.Log(output.Stdout + output.Stderr) }

func (l listener) Outcome(story.Step, error) {}
