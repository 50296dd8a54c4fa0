package kro

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// seeds are the files of this name in all golden tests.
func seeds(f *testing.F, name string) {
	f.Helper()
	for _, pattern := range []string{"testdata/plan/*.txt", "testdata/errors/*.txt"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				f.Fatal(err)
			}
			for _, file := range archive.Files {
				if file.Name == name {
					f.Add(file.Data)
				}
			}
		}
	}
}

// FuzzCompile compiles any bytes that can be read as a blueprint. What doesn't compile has errors that
// are the same the next time; what compiles can be planned.
func FuzzCompile(f *testing.F) {
	seeds(f, "blueprint")
	kinds := kindsForTest(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		blueprint := &v1alpha1.ResourceGraphDefinition{}
		if err := yaml.Unmarshal(raw, blueprint); err != nil {
			return
		}
		program, errs := Compile(blueprint, testExport, kinds, Limits{})
		if (program == nil) != (len(errs) > 0) {
			t.Fatalf("program %v, errors %v", program, errs)
		}
		checkErrors(t, errs)
		if program == nil {
			_, again := Compile(blueprint, testExport, kinds, Limits{})
			if diff := cmp.Diff(texts(errs), texts(again)); diff != "" {
				t.Fatalf("the errors differ: -first +second:\n%s", diff)
			}
			return
		}
		checkPlan(t, program, oneInstance(map[string]any{}))
	})
}

func checkErrors(t *testing.T, errs field.ErrorList) {
	for _, err := range errs {
		if !strings.HasPrefix(err.Field, "spec") {
			t.Errorf("an error is about %q", err.Field)
		}
		// A panic below krop's own code is dealt with; one in it is a bug.
		if strings.HasPrefix(err.Detail, "the compiler can't cope") {
			t.Error(err)
		}
	}
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func checkPlan(t *testing.T, program *engine.Program, instance *unstructured.Unstructured) {
	plan := program.Plan(instance, "consumer1", nil, nil)
	for _, node := range plan.Nodes {
		if node.Outcome == "" {
			t.Errorf("%s is undecided", node.ID)
		}
		if node.Err != nil && strings.HasPrefix(node.Err.Message, "internal error") {
			t.Errorf("%s: %v", node.ID, node.Err)
		}
	}
	rows := engine.Rows(plan, nil)
	if diff := cmp.Diff(rows, engine.Rows(plan, rows)); diff != "" {
		t.Errorf("rows differ the second time: %s", diff)
	}
	if stale := engine.Stale(plan, rows); len(stale) > 0 {
		t.Errorf("stale at once: %v", stale)
	}
	health := engine.Summarize(plan, rows, nil)
	if _, _, err := plan.Conditions(health.Conditions); err != nil && strings.Contains(err.Error(), "internal error") {
		t.Error(err)
	}
}

// FuzzPlan plans any object as an instance of the demo's blueprint, also such as its schema refuses.
func FuzzPlan(f *testing.F) {
	seeds(f, "instance")
	archive, err := txtar.ParseFile("testdata/plan/database.txt")
	if err != nil {
		f.Fatal(err)
	}
	program, errs := Compile(blueprintFromYAML(f, archive.Files[0].Data), testExport, kindsForTest(f), Limits{})
	if len(errs) > 0 {
		f.Fatal(errs.ToAggregate())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		json, err := yaml.YAMLToJSON(raw)
		if err != nil {
			return
		}
		object, _, err := unstructured.UnstructuredJSONScheme.Decode(json, nil, nil)
		if err != nil {
			return
		}
		if instance, ok := object.(*unstructured.Unstructured); ok {
			checkPlan(t, program, instance)
		}
	})
}
