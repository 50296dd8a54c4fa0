package kro

import (
	"context"
	"time"

	"go.opendefense.cloud/krop/pkg/budget"
)

// slice is what a plan may spend before others get their turn, in units of cost: some two milliseconds. Most
// plans cost less as a whole, and never take turns.
const slice = 20_000

// sliceTime is the same in time, for what takes longer than it costs.
const sliceTime = 5 * time.Millisecond

// turn is a place among the work that keeps a core busy, while one of the plan's steps runs.
type turn struct {
	tenant string
	leave  func() // nil: it has none
	failed error
	since  time.Time // when it began, or the step did
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
	t.since = time.Now()
	return t.failed
}

// isOver says whether it has taken its time.
func (t *turn) isOver() bool { return !t.since.IsZero() && time.Since(t.since) > sliceTime }

// end gives the place up. The next step of the plan has to take one before it spends anything.
func (t *turn) end() (had bool) {
	if t.leave == nil {
		return false
	}
	t.leave()
	t.leave = nil
	return true
}
