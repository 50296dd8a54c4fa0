package kro

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/features"
)

// interruptEvery is the number of loop iterations between two looks at the node's deadline.
const interruptEvery = 100

// kro compiles expressions without any bound on what they may cost to evaluate, and offers no option
// for it. Its environments do all extend one list of declarations, which it hands out: init adds a
// library there that declares nothing and has every program count what it does. Were an upgrade of
// kro to take that way away, Compile would refuse to work (checkBounded).
//
// CEL's own cost tracking is not used: the time it takes itself is quadratic in the length of a loop.
func init() {
	declarations := krocel.BaseDeclarations()
	first := declarations[0]
	declarations[0] = func(env *cel.Env) (*cel.Env, error) {
		env, err := first(env)
		if err != nil {
			return nil, err
		}
		return cel.Lib(metering{})(env)
	}
	// omit() is part of the authoring surface; kro has it behind a gate of the whole process.
	if err := features.FeatureGate.Set(string(features.CELOmitFunction) + "=true"); err != nil {
		panic(err)
	}
}

var errUnbounded = errors.New("expressions are evaluated without a budget")

// metering is a CEL library of program options only.
type metering struct{}

// CompileOptions implements cel.Library.
func (metering) CompileOptions() []cel.EnvOption { return nil }

// ProgramOptions implements cel.Library.
func (metering) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.InterruptCheckFrequency(interruptEvery),
		cel.CustomDecoratorV2(metered),
	}
}

// checkBounded proves, with an expression that goes over it, that programs do have a budget.
func checkBounded() error {
	const tooMuch = "lists.range(100).all(a, lists.range(100).all(b, a + b >= 0))"
	env, err := krocel.DefaultEnvironment()
	if err != nil {
		return err
	}
	ast, issues := env.Compile(tooMuch)
	if issues.Err() != nil {
		return issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return err
	}
	_, _, err = program.Eval(&scope{pass: &pass{meter: meter{expression: 1000, plan: 1000, slice: slice}}})
	var cancelled interpreter.EvalCancelledError
	if !errors.As(err, &cancelled) {
		return errUnbounded
	}
	return nil
}
