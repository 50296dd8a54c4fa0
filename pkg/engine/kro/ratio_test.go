package kro

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/cel-go/ext"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// unmetered compiles a blueprint to a program that counts nothing, as kro would.
func unmetered(t testing.TB, blueprint *v1alpha1.ResourceGraphDefinition) *engine.Program {
	t.Helper()
	compiled(t, chain(1)) // proves once that programs have a budget
	declarations := krocel.BaseDeclarations()
	metered := declarations[0]
	declarations[0] = ext.TwoVarComprehensions()
	defer func() { declarations[0] = metered }()
	return compiled(t, blueprint)
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
