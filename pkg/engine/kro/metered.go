package kro

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
)

// metered makes a call pay before it is made. Every loop makes calls, so that all of them end.
func metered(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := node.(interpreter.InterpretableCall)
	if !ok {
		return node, nil
	}
	price := prices[call.Function()]
	if price == nil {
		return &flatCall{call}, nil
	}
	operation, err := operationOf(call)
	if err != nil {
		return nil, err
	}
	if operation == nil {
		return &flatCall{call}, nil
	}
	return &pricedCall{InterpretableCall: call, args: call.Args(), price: price, operation: operation}, nil
}

// flatCall is a call that costs the same whatever its arguments.
type flatCall struct{ interpreter.InterpretableCall }

// Exec implements interpreter.InterpretableV2.
func (c *flatCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).spend(1)
	return c.InterpretableCall.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (c *flatCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// pricedCall is a call whose cost depends on its arguments.
type pricedCall struct {
	interpreter.InterpretableCall
	args      []interpreter.InterpretableV2
	price     func(args []ref.Val) int
	operation functions.FunctionOp
}

// Exec implements interpreter.InterpretableV2.
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		args[i] = arg.Exec(frame)
		if types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	cost := c.price(args)
	if cost > maxValue {
		return types.NewErr("%s: %w", c.Function(), tooLarge(cost))
	}
	meterOf(frame).spend(1 + cost/bytesPerUnit)
	return types.LabelErrNode(c.ID(), c.operation(args...))
}

// Eval implements interpreter.Interpretable.
func (c *pricedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// operationOf is what the call does, nil if it isn't a function that can be called from here.
func operationOf(call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	switch call.Function() {
	case operators.Equals:
		return func(args ...ref.Val) ref.Val { return types.Equal(args[0], args[1]) }, nil
	case operators.NotEquals:
		return func(args ...ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }, nil
	}
	bound, err := implementations()
	if err != nil {
		return nil, err
	}
	if operation, ok := bound[binding{call.Function(), call.OverloadID()}]; ok {
		return operation, nil
	}
	// Not resolved when it was checked: the function finds the overload by its arguments.
	return bound[binding{call.Function(), call.Function()}], nil
}

// binding names an implementation of a function; that of the function itself has its name twice.
type binding struct{ function, overload string }

// implementations are the priced functions as their libraries bind them.
var implementations = sync.OnceValues(func() (map[binding]functions.FunctionOp, error) {
	env, err := cel.NewEnv(krocel.BaseDeclarations()...)
	if err != nil {
		return nil, err
	}
	out := make(map[binding]functions.FunctionOp)
	for name := range prices {
		function, ok := env.Functions()[name]
		if !ok {
			continue
		}
		bindings, err := function.Bindings()
		if err != nil {
			return nil, err
		}
		for _, bound := range bindings {
			out[binding{name, bound.Operator}] = operation(name, bound)
		}
	}
	return out, nil
})

// operation calls the implementation as CEL's interpreter does.
func operation(name string, bound *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		if bound.OperandTrait != 0 && !args[0].Type().HasTrait(bound.OperandTrait) {
			return types.NewErr("no such overload: %s", name)
		}
		switch {
		case len(args) == 1 && bound.Unary != nil:
			return bound.Unary(args[0])
		case len(args) == 2 && bound.Binary != nil:
			return bound.Binary(args[0], args[1])
		case bound.Function != nil:
			return bound.Function(args...)
		default:
			return types.NewErr("no such overload: %s", name)
		}
	}
}
