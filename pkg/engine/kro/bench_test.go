package kro

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// BenchmarkPlanFiveNodes plans the demo's blueprint with everything observed. The aim is 200 µs.
func BenchmarkPlanFiveNodes(b *testing.B) {
	archive, err := txtar.ParseFile("testdata/plan/complete.txt")
	if err != nil {
		b.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, file := range archive.Files {
		files[file.Name] = file.Data
	}
	program, errs := Compile(blueprintFromYAML(b, files["blueprint"]), testExport, kindsForTest(b), Limits{})
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	instance := instanceFromYAML(b, files["instance"])
	withDefaults(b, program, instance)
	var observations []seen
	if err := yaml.Unmarshal(files["observed"], &observations); err != nil {
		b.Fatal(err)
	}
	observed, _ := observedBy(program, instance, observations, nil)
	b.ReportAllocs()
	defer reportCPU(b)()
	for range b.N {
		if plan := program.Plan(instance, "consumer1", observed, nil); plan.StatusError != nil {
			b.Fatal(plan.StatusError)
		}
	}
}

// BenchmarkPlanForEach plans one collection of a thousand objects.
func BenchmarkPlanForEach(b *testing.B) {
	raw, err := os.ReadFile("testdata/collection.yaml")
	if err != nil {
		b.Fatal(err)
	}
	program, errs := Compile(blueprintFromYAML(b, raw), testExport, kindsForTest(b), Limits{})
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	instance := instanceFromYAML(b, []byte(`{apiVersion: example.org/v1alpha1, kind: Many, metadata: {name: many, namespace: team, uid: u1}, spec: {count: 1000}}`))
	b.ReportAllocs()
	defer reportCPU(b)()
	for range b.N {
		if plan := program.Plan(instance, "consumer1", nil, nil); len(plan.Nodes[0].Children) != 1000 {
			b.Fatal(plan.Nodes[0].Err)
		}
	}
}

// BenchmarkCompile compares Compile with kro's builder alone.
func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1, 10, 50} {
		blueprint := chain(n)
		b.Run(fmt.Sprintf("krop/%d", n), func(b *testing.B) {
			defer reportCPU(b)()
			for range b.N {
				if _, errs := Compile(blueprint, testExport, kindsForTest(b), Limits{}); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
		b.Run(fmt.Sprintf("kro/%d", n), func(b *testing.B) {
			defer reportCPU(b)()
			for range b.N {
				c := newCompilation(blueprint, kindsForTest(b), Limits{})
				c.checkStructure()
				c.resolveKinds()
				if _, err := c.build(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// reportCPU reports the CPU time of the whole process per operation, which says more than the time
// that passes where others are busy too.
func reportCPU(b *testing.B) func() {
	before := cpuTime(b)
	b.ResetTimer()
	return func() { b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op") }
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// chain is a blueprint of n config maps, each reading the one before.
func chain(n int) *v1alpha1.ResourceGraphDefinition {
	blueprint := &v1alpha1.ResourceGraphDefinition{}
	blueprint.Name = "chain"
	blueprint.Spec.Schema = &v1alpha1.Schema{Kind: "Chain", APIVersion: "v1", Group: "example.org"}
	blueprint.Spec.Schema.Spec.Raw = []byte(`{"value":"string"}`)
	before := "schema.spec.value"
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		r := v1alpha1.Resource{ID: id}
		r.Template.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${schema.metadata.name}-%d"},"data":{"a":"${%s}","b":"x-${%s}"}}`, i, before, before)
		blueprint.Spec.Resources = append(blueprint.Spec.Resources, r)
		before = id + ".data.a"
	}
	return blueprint
}
