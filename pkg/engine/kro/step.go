package kro

import (
	"context"
	"time"

	"go.opendefense.cloud/krop/pkg/budget"
)

// nodeTime is how long the expressions of one node may take.
var nodeTime = time.Duration(budget.NodeSeconds.Default) * time.Second

// begin starts the time of one step of a pass. It stands still while the step waits for its turn. end has to be
// called, and gives up the turn that the step may have.
func (p *pass) begin() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx = ctx
	timer := time.AfterFunc(nodeTime, cancel)
	p.meter.turn.pause = func() { timer.Stop() }
	p.meter.turn.resume = func() { timer.Reset(nodeTime) }
	return func() {
		timer.Stop()
		cancel()
		if p.meter.turn.end() {
			p.meter.slice = 0
		}
	}
}

// timedOut says whether the step's time is up.
func (p *pass) timedOut() bool { return p.ctx != nil && p.ctx.Err() != nil }
