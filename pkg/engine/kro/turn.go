package kro

import (
	"context"

	"go.opendefense.cloud/krop/pkg/budget"
)

// slice is what a plan may spend before others get their turn, in units of cost: some two milliseconds. Most
// plans cost less as a whole, and never take turns.
const slice = 20_000

// turn is a place among the work that keeps a core busy, while one of the plan's steps runs.
type turn struct {
	tenant string
	leave  func() // nil: it has none
	failed error
	// pause and resume are called around waiting, so that the time of the step stands still.
	pause, resume func()
}

// next gives the place to who waits for it, and takes one again when it is this plan's turn.
func (t *turn) next() error {
	t.end()
	if t.pause != nil {
		t.pause()
		defer t.resume()
	}
	t.leave, t.failed = budget.Cores.Enter(context.Background(), t.tenant)
	return t.failed
}

// end gives the place up. The next step of the plan has to take one before it spends anything.
func (t *turn) end() (had bool) {
	if t.leave == nil {
		return false
	}
	t.leave()
	t.leave = nil
	return true
}
