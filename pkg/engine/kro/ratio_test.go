package kro

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// metersOff has programs that are made from now on count nothing.
var metersOff bool

// All environments extend one that kro makes only once, so that metering can't be taken off it later. Here it is made
// with something on either side of metering that, if metersOff is set, hides calls from it.
func init() {
	declarations := krocel.BaseDeclarations()
	metered := declarations[0]
	declarations[0] = func(env *cel.Env) (*cel.Env, error) {
		for _, option := range []cel.EnvOption{cel.Lib(decorator(hide)), metered, cel.Lib(decorator(reveal))} {
			var err error
			if env, err = option(env); err != nil {
				return nil, err
			}
		}
		return env, nil
	}
}

// decorator is a CEL library that changes what programs are made of.
type decorator interpreter.InterpretableDecoratorV2

func (decorator) CompileOptions() []cel.EnvOption { return nil }

func (d decorator) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CustomDecoratorV2(interpreter.InterpretableDecoratorV2(d))}
}

// hidden is a call that isn't seen to be one.
type hidden struct{ interpreter.InterpretableV2 }

func hide(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if _, ok := node.(interpreter.InterpretableCall); ok && metersOff {
		return hidden{node}, nil
	}
	return node, nil
}

func reveal(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if was, ok := node.(hidden); ok {
		return was.InterpretableV2, nil
	}
	return node, nil
}

// unmetered compiles a blueprint to a program that counts nothing, as kro would. What its expressions may cost is
// next to nothing, so that its plans would fail if they were counted.
func unmetered(t testing.TB, blueprint *v1alpha1.ResourceGraphDefinition) *engine.Program {
	t.Helper()
	compiled(t, chain(1)) // proves once that programs have a budget
	metersOff = true
	defer func() { metersOff = false }()
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{budget.ExpressionCost: 1})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return program
}

// TestMetersCanBeTakenOff is about what budgets are compared to.
func TestMetersCanBeTakenOff(t *testing.T) {
	instance := oneInstance(map[string]any{"n": int64(1000), "text": "x", "value": "y"})
	plan := unmetered(t, many("schema.spec.text + string(i * 2)", 1)).Plan(instance, "c", nil, nil)
	if node := plan.Nodes[0]; node.Outcome != engine.Desired || len(node.Children) != 1000 {
		t.Errorf("the plan says %s and has %d children: %v", node.Outcome, len(node.Children), node.Err)
	}
}

func compiled(t testing.TB, blueprint *v1alpha1.ResourceGraphDefinition) *engine.Program {
	t.Helper()
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return program
}

// BenchmarkBudgets makes plans with and without budgets, by turns, and reports how they compare. The aim is a
// ratio below 1.3.
func BenchmarkBudgets(b *testing.B) {
	thousand := oneInstance(map[string]any{"n": int64(1000), "text": "x", "value": "y"})
	for name, c := range map[string]struct {
		blueprint *v1alpha1.ResourceGraphDefinition
		children  int
	}{
		"plan of 5 nodes":            {chain(5), 5},
		"plan of 50 nodes":           {chain(50), 50},
		"forEach over 1,000 objects": {many("schema.spec.text + string(i * 2)", 1), 1000},
	} {
		b.Run(name, func(b *testing.B) {
			with, without := compiled(b, c.blueprint), unmetered(b, c.blueprint)
			observed := settled(b, with, thousand, c.children)
			compare(b, func() { with.Plan(thousand, "c", observed, nil) }, func() { without.Plan(thousand, "c", observed, nil) })
		})
	}
}

// settled observes what is wanted, as often as it takes until the plan has all children.
func settled(b *testing.B, program *engine.Program, instance *unstructured.Unstructured, children int) engine.Observed {
	b.Helper()
	observed := engine.Observed{}
	for range children + 1 {
		plan := program.Plan(instance, "c", observed, nil)
		for _, node := range plan.Nodes {
			for _, child := range node.Children {
				observed[child.Key] = child.Object
			}
		}
		if len(observed) == children {
			return observed
		}
	}
	b.Fatalf("the plan has %d children, expected %d", len(observed), children)
	return nil
}

// BenchmarkBuilder compiles with krop and with kro's builder alone, by turns. The aim is a ratio below 1.1.
func BenchmarkBuilder(b *testing.B) {
	for _, n := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("compile of %d resources", n), func(b *testing.B) {
			blueprint := chain(n)
			kinds := kindsForTest(b)
			compare(b, func() {
				if _, errs := Compile(blueprint, testExport, kinds, Limits{}); len(errs) > 0 {
					b.Fatal(errs)
				}
			}, func() {
				metersOff = true
				defer func() { metersOff = false }()
				c := newCompilation(blueprint, kinds, Limits{})
				c.checkStructure()
				c.resolveKinds()
				if _, err := c.build(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// compare calls two functions by turns and reports the median of each, and the ratio. By turns, since the machine may
// be busy with other things now and not a moment later.
func compare(b *testing.B, krop, bare func()) {
	krop()
	bare()
	var ours, theirs []time.Duration
	for range b.N {
		began := time.Now()
		krop()
		between := time.Now()
		bare()
		ours, theirs = append(ours, between.Sub(began)), append(theirs, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	a, z := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(a.Microseconds()), "krop-µs")
	b.ReportMetric(float64(z.Microseconds()), "bare-µs")
	b.ReportMetric(float64(a)/float64(z), "ratio")
}
