package kro

import (
	"errors"

	"github.com/google/cel-go/interpreter"

	"go.opendefense.cloud/krop/pkg/budget"
)

// meter is what an evaluation may still cost.
type meter struct {
	limits Limits
	// expression is what is left for the expression at hand, and plan what is left for all of them.
	expression, plan int
	// rendered is how many bytes of children may still be made, and projected of status.
	rendered, projected int
	// slice is what may be spent before others get their turn. See turn.
	slice int
	turn  turn
	// calls is how often something was spent.
	calls int
}

// lookEvery is how many calls are between two looks at the clock, which takes as long as a call.
const lookEvery = 64

func newMeter(limits Limits, tenant string) meter {
	return meter{
		limits:     limits,
		expression: limits.Of(budget.ExpressionCost),
		plan:       limits.Of(budget.PlanCost),
		rendered:   limits.Of(budget.RenderedBytes),
		projected:  maxValue,
		slice:      slice,
		turn:       turn{tenant: tenant},
	}
}

// next begins an expression.
func (m *meter) next() { m.expression = m.limits.Of(budget.ExpressionCost) }

// spend ends the evaluation of an expression, in the way that CEL provides for it, if there isn't enough left.
func (m *meter) spend(cost int) {
	if m == nil {
		return
	}
	m.expression -= cost
	if m.expression < 0 {
		panic(interpreter.EvalCancelledError{Message: "over budget", Cause: interpreter.CostLimitExceeded})
	}
	if err := m.take(cost); err != nil {
		panic(interpreter.EvalCancelledError{Message: err.Error(), Cause: interpreter.CostLimitExceeded})
	}
}

// take is spend for what isn't part of an expression.
func (m *meter) take(cost int) error {
	m.plan -= cost
	m.slice -= cost
	if m.calls++; m.calls%lookEvery == 0 && m.turn.isOver() {
		m.slice = -1
	}
	switch {
	case m.plan < 0:
		return m.limits.More(budget.PlanCost)
	case m.slice < 0:
		m.slice = slice
		return m.turn.next()
	}
	return nil
}

// render pays for bytes of children.
func (m *meter) render(size int) error {
	if m.rendered -= size; m.rendered < 0 {
		return m.limits.More(budget.RenderedBytes)
	}
	return m.take(size / bytesPerUnit)
}

// project pays for bytes of the status.
func (m *meter) project(size int) error {
	if m.projected -= size; m.projected < 0 {
		return tooLarge(maxValue + 1)
	}
	return m.take(size / bytesPerUnit)
}

// cancelled is the error of an evaluation that spend has ended.
func (m *meter) cancelled() error {
	switch {
	case m.plan < 0:
		return m.limits.More(budget.PlanCost)
	case m.expression < 0:
		return m.limits.More(budget.ExpressionCost)
	case m.turn.failed != nil:
		return m.turn.failed
	default:
		return errors.New("it was interrupted")
	}
}

// meterOf finds the meter of the evaluation that the frame is part of: below the frames of loops
// there is the scope. Evaluations that aren't a pass's have none; only tests make such.
func meterOf(frame *interpreter.ExecutionFrame) *meter {
	for activation := interpreter.Activation(frame); activation != nil; activation = activation.Parent() {
		if frame, ok := activation.(*interpreter.ExecutionFrame); ok {
			activation = frame.Unwrap()
		}
		if scope, ok := activation.(*scope); ok {
			return &scope.pass.meter
		}
	}
	return nil
}
