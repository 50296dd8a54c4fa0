package kro

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/features"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// ExpressionCost is what one evaluation of one expression may cost, in CEL's units: what
	// Kubernetes grants to one rule of a custom resource. It is about a hundredth of a second.
	ExpressionCost = 1_000_000
	// interruptEvery is the number of loop iterations between two looks at the plan's deadline.
	interruptEvery = 100
)

// kro compiles expressions without any bound on what they may cost to evaluate, and offers no option
// for it. Its environments do all extend one list of declarations, which it hands out: init adds a
// library there that declares nothing and puts the bounds on every program. TestExpressionsAreBounded
// fails if an upgrade of kro takes that way away, and then Compile refuses to work.
func init() {
	declarations := krocel.BaseDeclarations()
	first := declarations[0]
	declarations[0] = func(env *cel.Env) (*cel.Env, error) {
		env, err := first(env)
		if err != nil {
			return nil, err
		}
		return cel.Lib(budget{})(env)
	}
	// omit() is part of the authoring surface; kro has it behind a gate of the whole process.
	if err := features.FeatureGate.Set(string(features.CELOmitFunction) + "=true"); err != nil {
		panic(err)
	}
}

// checkBounded proves, with an expression that goes over it, that programs do have a budget.
func checkBounded() error {
	const tooMuch = "lists.range(100000).all(a, lists.range(100000).all(b, a + b >= 0))"
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
	_, details, err := program.Eval(cel.NoVars())
	if err == nil || details.ActualCost() == nil {
		return fmt.Errorf("expressions are evaluated without a budget")
	}
	return nil
}

// budget is a CEL library of program options only.
type budget struct{}

// CompileOptions implements cel.Library.
func (budget) CompileOptions() []cel.EnvOption { return nil }

// ProgramOptions implements cel.Library.
func (budget) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CostLimit(ExpressionCost),
		cel.CostTracking(&costs{}),
		cel.InterruptCheckFrequency(interruptEvery),
		cel.CustomDecoratorV2(guardCalls),
	}
}

// costs knows what Kubernetes' functions cost, and that kro's take time in proportion to what goes
// in and comes out; by default CEL takes any function it doesn't know to cost 1.
type costs struct{ kubernetes library.CostEstimator }

// linear are the functions of kro's libraries and of base64 whose cost CEL doesn't know.
var linear = map[string]bool{
	"lists.setAtIndex": true, "lists.insertAtIndex": true, "lists.removeAtIndex": true,
	"merge": true, "deepMerge": true, "json.marshal": true, "json.unmarshal": true,
	"hash.fnv64a": true, "hash.sha256": true, "hash.md5": true,
	"random.seededString": true, "random.seededInt": true,
	"base64.encode": true, "base64.decode": true,
}

// CallCost implements interpreter.ActualCostEstimator.
func (c *costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if !linear[function] {
		return c.kubernetes.CallCost(function, overload, args, result)
	}
	cost := 1 + size(result)
	for _, arg := range args {
		cost += size(arg)
	}
	return &cost
}

func size(value ref.Val) uint64 {
	if sizer, ok := value.(traits.Sizer); ok {
		if n, ok := sizer.Size().(types.Int); ok {
			return uint64(n)
		}
	}
	return 1
}
