package kro

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestPlans reads testdata/plan/*.txt: a blueprint, an instance, what is observed, and the plan that
// must come of it. Observed objects are given as the node that they are of, and what is in them
// beside what was desired.
func TestPlans(t *testing.T) {
	golden(t, "testdata/plan/*.txt", "plan", func(t *testing.T, files map[string][]byte) string {
		return planOf(t, files)
	})
}

// TestErrors reads testdata/errors/*.txt: a blueprint, and all that is wrong with it.
func TestErrors(t *testing.T) {
	golden(t, "testdata/errors/*.txt", "errors", func(t *testing.T, files map[string][]byte) string {
		blueprint := blueprintFromYAML(t, files["blueprint"])
		_, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
		var out strings.Builder
		for _, err := range errs {
			fmt.Fprintln(&out, err.Error())
		}
		return out.String()
	})
}

var testExport = v1alpha1.ExportKey{Cluster: "provider1", Name: "things.example.org"}

func golden(t *testing.T, pattern, result string, run func(*testing.T, map[string][]byte) string) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := make(map[string][]byte)
			for _, file := range archive.Files {
				files[file.Name] = file.Data
			}
			got := run(t, files)
			if *update {
				write(t, path, archive, result, got)
				return
			}
			if diff := cmp.Diff(string(files[result]), got); diff != "" {
				t.Errorf("-want +got (go test -update rewrites):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, path string, archive *txtar.Archive, name, content string) {
	kept := slices.DeleteFunc(archive.Files, func(file txtar.File) bool { return file.Name == name })
	archive.Files = append(kept, txtar.File{Name: name, Data: []byte(content)})
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// seen is an observed child.
type seen struct {
	Node  v1alpha1.NodeID `json:"node"`
	Item  int             `json:"item"`
	UID   types.UID       `json:"uid"`
	Merge map[string]any  `json:"merge"`
}

// reading is what was read for an externalRef: no objects if there are none.
type reading struct {
	Node    v1alpha1.NodeID  `json:"node"`
	Objects []map[string]any `json:"objects"`
	Failure string           `json:"failure"`
}

func planOf(t *testing.T, files map[string][]byte) string {
	program, errs := Compile(blueprintFromYAML(t, files["blueprint"]), testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatalf("the blueprint doesn't compile: %v", errs.ToAggregate())
	}
	instance := instanceFromYAML(t, files["instance"])
	var observations []seen
	if err := yaml.Unmarshal(files["observed"], &observations); err != nil {
		t.Fatal(err)
	}
	for _, o := range observations {
		integers(o.Merge)
	}
	var previous []v1alpha1.ComposedResource
	if err := yaml.UnmarshalStrict(files["previous"], &previous); err != nil {
		t.Fatal(err)
	}
	withDefaults(t, program, instance)
	var readings []reading
	if err := yaml.Unmarshal(files["read"], &readings); err != nil {
		t.Fatal(err)
	}
	observed, read := observedBy(program, instance, observations, readings)
	plan := program.Plan(instance, "consumer1", observed, read)
	return describePlan(t, plan, previous)
}

func instanceFromYAML(t testing.TB, raw []byte) *unstructured.Unstructured {
	t.Helper()
	// As an API server would decode it: integers are int64.
	json, err := yaml.YAMLToJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, json)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

// withDefaults fills in what the kind's schema says, as the registry does before it plans.
func withDefaults(t testing.TB, program *engine.Program, instance *unstructured.Unstructured) {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(program.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	defaulting.Default(instance.Object, structural)
}

// observedBy is what is observed and read once everything that is to be could be.
func observedBy(program *engine.Program, instance *unstructured.Unstructured, observations []seen, readings []reading) (engine.Observed, engine.Read) {
	observed, read := engine.Observed{}, engine.Read{}
	for range len(observations) + len(readings) {
		plan := program.Plan(instance, "consumer1", observed, read)
		for _, r := range readings {
			node := plan.Node(r.Node)
			if node == nil || node.Reference == nil {
				continue
			}
			result := engine.Reading{Failure: r.Failure}
			for _, object := range r.Objects {
				integers(object)
				result.Objects = append(result.Objects, &unstructured.Unstructured{Object: object})
			}
			read[node.Reference.Key()] = result
		}
		for _, o := range observations {
			node := plan.Node(o.Node)
			if node == nil || len(node.Children) <= o.Item {
				continue
			}
			object := node.Children[o.Item].Object.DeepCopy()
			object.SetUID(o.UID)
			mergeInto(object.Object, o.Merge)
			observed[node.Children[o.Item].Key] = object
		}
	}
	return observed, read
}

// integers makes int64 of numbers that YAML gives as float64.
func integers(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case map[string]any:
			integers(v)
		case float64:
			if v == float64(int64(v)) {
				object[key] = int64(v)
			}
		}
	}
}

func mergeInto(object, patch map[string]any) {
	for key, value := range patch {
		nested, isMap := value.(map[string]any)
		below, hasMap := object[key].(map[string]any)
		switch {
		case isMap && hasMap:
			mergeInto(below, nested)
		case isMap:
			object[key] = runtime.DeepCopyJSON(nested)
		default:
			object[key] = value
		}
	}
}

func describePlan(t *testing.T, plan *engine.Plan, previous []v1alpha1.ComposedResource) string {
	var out bytes.Buffer
	for i := range plan.Nodes {
		describeNode(t, &out, &plan.Nodes[i])
	}
	rows := engine.Rows(plan, previous)
	section(t, &out, "rows", rows)
	if stale := engine.Stale(plan, rows); len(stale) > 0 {
		section(t, &out, "stale", stale)
	}
	section(t, &out, "status", plan.Status)
	for _, waiting := range plan.StatusWaiting {
		fmt.Fprintf(&out, "status waits for %s\n", waiting.String())
	}
	if plan.StatusError != nil {
		fmt.Fprintf(&out, "status fails: %v\n", plan.StatusError)
	}
	health := engine.Summarize(plan, rows, nil)
	fmt.Fprintf(&out, "summary: %s\n", health.Summary)
	describeConditions(&out, health.Conditions)
	authored, complete, err := plan.Conditions(health.Conditions)
	describeConditions(&out, authored)
	if !complete || err != nil {
		fmt.Fprintf(&out, "author's conditions: complete %v, error %v\n", complete, err)
	}
	return out.String()
}

func describeNode(t *testing.T, out *bytes.Buffer, node *engine.NodePlan) {
	fmt.Fprintf(out, "%s: %s, level %d", node.ID, node.Outcome, node.Level)
	if node.Ready {
		fmt.Fprint(out, ", ready")
	}
	if node.Waiting != nil {
		fmt.Fprintf(out, ", waits for %s", node.Waiting.String())
	}
	if node.Err != nil {
		fmt.Fprintf(out, ", %v", node.Err)
	}
	fmt.Fprintln(out)
	if ref := node.Reference; ref != nil {
		fmt.Fprintf(out, "  reads %s %s, namespace %q, ", ref.Target, ref.GVR.GroupResource(), ref.Namespace)
		if ref.Selector == nil {
			fmt.Fprintf(out, "name %q: %d found\n", ref.Name, len(node.Found))
		} else {
			fmt.Fprintf(out, "selector %q: %d found\n", ref.Selector, len(node.Found))
		}
	}
	for _, child := range node.Children {
		fmt.Fprintf(out, "  %s %s %s/%s", child.Key.Target, child.Key.GroupResource, child.Key.Namespace, child.Key.Name)
		if child.Observed != nil {
			fmt.Fprintf(out, ", observed")
		}
		fmt.Fprintln(out)
		raw, err := yaml.Marshal(child.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(out, "    ", strings.ReplaceAll(strings.TrimSpace(string(raw)), "\n", "\n    "), "\n")
	}
}

func section(t *testing.T, out *bytes.Buffer, name string, value any) {
	raw, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "%s:\n  %s\n", name, strings.ReplaceAll(strings.TrimSpace(string(raw)), "\n", "\n  "))
}

func describeConditions(out *bytes.Buffer, conditions []engine.Condition) {
	for _, c := range conditions {
		fmt.Fprintf(out, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
}
