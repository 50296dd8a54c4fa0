package kro

import (
	"context"
	"time"

	"go.opendefense.cloud/krop/pkg/budget"
)

// nodeTime is how long the expressions of one node may take, and planTime those of all of them.
var (
	nodeTime = time.Duration(budget.NodeSeconds.Default) * time.Second
	planTime = time.Duration(budget.PlanSeconds.Default) * time.Second
)

// begin starts the time of one step of a pass. It stands still while the step waits for its turn. end has to be
// called, and gives up the turn that the step may have.
func (p *pass) begin() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx = ctx
	left := min(nodeTime, p.left)
	timer, began := time.AfterFunc(left, cancel), time.Now()
	stop := func() {
		timer.Stop()
		spent := time.Since(began)
		left, p.left = left-spent, p.left-spent
	}
	p.meter.turn.since = began
	p.meter.turn.pause = stop
	p.meter.turn.resume = func() {
		timer.Reset(max(left, 0))
		began = time.Now()
	}
	return func() {
		stop()
		cancel()
		if p.meter.turn.end() {
			p.meter.slice = 0
		}
	}
}

// timedOut says whether the step's time is up.
func (p *pass) timedOut() bool { return p.ctx != nil && p.ctx.Err() != nil }

// late names the time that the step has gone over.
func (p *pass) late() error {
	if p.left <= nodeTime {
		return Limits{}.More(budget.PlanSeconds)
	}
	return Limits{}.More(budget.NodeSeconds)
}
