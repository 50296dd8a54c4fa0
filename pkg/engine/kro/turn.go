package kro

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	// slice is what a plan may spend before others get their turn, in units of cost: some two milliseconds. Most
	// plans cost less as a whole, and never take turns.
	slice = 20_000
	// turnPatience is how long a plan waits for one turn: time for some hundred others, while the request has time left.
	turnPatience = 5 * time.Second
)

// heavy is the turns of plans that cost more than a slice. One core is always left for everybody else: these
// evaluations never wait for anything, so that a few of them would otherwise delay each step of every other request.
// The places are the process's, since its cores are.
var heavy = budget.NewTurns(max(1, runtime.GOMAXPROCS(0)-1), max(1, runtime.GOMAXPROCS(0)-1), budget.HeavyPlans.Default)

// turn is a place among the plans that are evaluated at length, while one of their steps runs.
type turn struct {
	tenant string
	leave  func() // nil: it has none
	failed error
	// pause and resume are called around waiting, so that the time of the step stands still.
	pause, resume func()
}

// next gives the place to who waits for it, and takes one again when it is this plan's turn.
func (t *turn) next() error {
	if t.leave != nil {
		if !heavy.Crowded() {
			runtime.Gosched()
			return nil
		}
		t.end()
	}
	if t.pause != nil {
		t.pause()
		defer t.resume()
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnPatience)
	defer cancel()
	leave, err := heavy.Enter(ctx, t.tenant)
	if err != nil {
		t.failed = Limits{}.Exceeded(budget.HeavyPlans, fmt.Sprintf("this one has waited for %s or there were more", turnPatience))
		return t.failed
	}
	t.leave = leave
	return nil
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
