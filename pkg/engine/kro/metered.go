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

// metered makes what takes time or memory pay before it is done: calls, making lists and maps, and loops, so that all
// of them end.
func metered(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch n := node.(type) {
	case interpreter.InterpretableCall:
		return meteredCall(n)
	case interpreter.InterpretableConstructor:
		return &construction{InterpretableConstructor: n, cost: 1 + len(n.InitVals())}, nil
	case interpreter.InterpretableConst:
		// What a loop asks before each turn is a call, or this.
		if n.Value() == types.True {
			return &truth{n}, nil
		}
	}
	return node, nil
}

func meteredCall(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	if err := checkPattern(call); err != nil {
		return nil, err
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
	priced := pricedCall{call: call, args: call.Args(), price: price, operation: operation}
	if call.Function() == searchAll {
		return newSearch(priced)
	}
	return &priced, nil
}

// construction makes a list, a map or an object.
type construction struct {
	interpreter.InterpretableConstructor
	cost int
}

// Exec implements interpreter.InterpretableV2.
func (c *construction) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).spend(c.cost)
	return c.InterpretableConstructor.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (c *construction) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// truth is the constant.
type truth struct{ interpreter.InterpretableConst }

// Exec implements interpreter.InterpretableV2.
func (t *truth) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	meterOf(frame).spend(1)
	return t.InterpretableConst.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (t *truth) Eval(vars interpreter.Activation) ref.Val {
	return t.Exec(interpreter.AsFrame(vars))
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

// pricedCall is a call whose cost depends on its arguments. To CEL it is no call: it would put in its place one with a
// regular expression that is made beforehand, and that pays nothing.
type pricedCall struct {
	call      interpreter.InterpretableCall
	args      []interpreter.InterpretableV2
	price     func(args []ref.Val) int
	operation functions.FunctionOp
}

// ID implements interpreter.Interpretable.
func (c *pricedCall) ID() int64 { return c.call.ID() }

// Exec implements interpreter.InterpretableV2.
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args, failed := c.evaluated(frame)
	if failed != nil {
		return failed
	}
	meter := meterOf(frame)
	cost := c.price(args)
	if cost > maxValue {
		// Finding out has taken time, and a loop may ask again.
		meter.spend(1 + maxValue/bytesPerUnit)
		return types.NewErr("%s: %w", c.call.Function(), tooLarge(cost))
	}
	meter.spend(1 + cost/bytesPerUnit)
	return types.LabelErrNode(c.ID(), c.operation(args...))
}

// evaluated are the values of the arguments, or the first of them that has none.
func (c *pricedCall) evaluated(frame *interpreter.ExecutionFrame) (args []ref.Val, failed ref.Val) {
	args = make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		args[i] = arg.Exec(frame)
		if types.IsUnknownOrError(args[i]) {
			return nil, args[i]
		}
	}
	return args, nil
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
