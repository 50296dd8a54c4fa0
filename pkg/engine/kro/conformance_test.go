package kro

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	kroruntime "github.com/kubernetes-sigs/kro/pkg/runtime"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// anyKind serves every kind, without a schema.
type anyKind struct{}

func (anyKind) Resolve(_ v1alpha1.Target, gvk schema.GroupVersionKind) (Kind, error) {
	clusterScoped := gvk.Kind == "ClusterRole" || gvk.Kind == "ClusterRoleBinding" || gvk.Kind == "Namespace"
	return Kind{GVR: gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), Namespaced: !clusterScoped}, nil
}

// mistakes are fields of kro's examples that kro accepts and krop refuses.
var mistakes = map[string]string{
	// It shows status.synced, which the kind doesn't have.
	"/aws/dogsvscats-appstack/dogsvscats-rg.yaml/dogsvscats-app.kro.run": "spec.schema.additionalPrinterColumns[1].jsonPath",
}

// TestAcceptsWhatKroAccepts has krop and kro's own builder compile every example that kro comes with.
// Either both accept it and the diagnosis finds nothing in it, or neither does.
func TestAcceptsWhatKroAccepts(t *testing.T) {
	accepted := 0
	for path, blueprint := range kroExamples(t) {
		c := newCompilation(blueprint, anyKind{}, Limits{})
		c.checkStructure()
		c.resolveKinds()
		_, want := c.build()
		_, got := Compile(blueprint, testExport, anyKind{}, Limits{})
		if mistake := mistakes[path]; mistake != "" {
			if len(got) != 1 || got[0].Field != mistake {
				t.Errorf("%s: krop says %v, want an error of %s", path, got.ToAggregate(), mistake)
			}
			continue
		}
		if (want == nil) != (len(got) == 0) {
			t.Errorf("%s: kro says %v, krop says %v", path, want, got.ToAggregate())
		}
		if want == nil {
			accepted++
			if c.diagnose(); len(c.errs) > 0 {
				t.Errorf("%s compiles, but the diagnosis finds: %v", path, c.errs.ToAggregate())
			}
		}
	}
	if accepted < 30 {
		t.Errorf("only %d examples were compared", accepted)
	}
}

func kroExamples(t *testing.T) map[string]*v1alpha1.ResourceGraphDefinition {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubernetes-sigs/kro").Output()
	if err != nil {
		t.Skipf("kro's sources are not here: %v", err)
	}
	examples := make(map[string]*v1alpha1.ResourceGraphDefinition)
	root := filepath.Join(strings.TrimSpace(string(dir)), "examples")
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range strings.Split(string(raw), "\n---") {
			blueprint := &v1alpha1.ResourceGraphDefinition{}
			if yaml.Unmarshal([]byte(document), blueprint) == nil && blueprint.Kind == "ResourceGraphDefinition" && blueprint.Spec.Schema != nil {
				examples[strings.TrimPrefix(path, root)+"/"+blueprint.Name] = blueprint
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return examples
}

// TestEvaluatesAsKroDoes renders the golden blueprints with kro's own runtime too, as far as that gets
// without anything observed, and compares objects and what is ignored.
func TestEvaluatesAsKroDoes(t *testing.T) {
	paths, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := make(map[string][]byte)
			for _, file := range archive.Files {
				files[file.Name] = file.Data
			}
			compareWithKro(t, files)
		})
	}
}

func compareWithKro(t *testing.T, files map[string][]byte) {
	blueprint := blueprintFromYAML(t, files["blueprint"])
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	instance := instanceFromYAML(t, files["instance"])
	withDefaults(t, program, instance)

	c := newCompilation(blueprint, kindsForTest(t), Limits{})
	c.checkStructure()
	c.resolveKinds()
	compiled, err := c.build()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := kroruntime.FromGraph(compiled, graph.Config{MaxCollectionSize: budget.ForEachItems.Default, MaxCollectionDimensionSize: budget.Dimensions.Default}, kroruntime.WithInstance(instance))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := program.Graph.Start(instance)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range theirs.Nodes() {
		id := v1alpha1.NodeID(node.Spec.Meta.ID)
		wantIgnored, wantErr := node.IsIgnored()
		gotIgnored, gotErr := ours.Ignored(id)
		// krop knows sooner that a resource is ignored: kro waits for all that it depends on.
		sooner := wantErr != nil && gotIgnored && gotErr == nil
		if !sooner && (wantIgnored != gotIgnored || (wantErr == nil) != (gotErr == nil)) {
			t.Errorf("%s: kro ignores %v (%v), krop %v (%v)", id, wantIgnored, wantErr, gotIgnored, gotErr)
		}
		if wantErr != nil || wantIgnored {
			continue
		}
		want, wantErr := node.GetDesired()
		got, gotErr := ours.Desired(id)
		if (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%s: kro renders with error %v, krop with %v", id, wantErr, gotErr)
		}
		if diff := cmp.Diff(contents(want), contents(got)); diff != "" && wantErr == nil {
			t.Errorf("%s: -kro +krop:\n%s", id, diff)
		}
		if wantErr == nil {
			if node.Spec.Meta.Type == graph.NodeTypeExternalCollection {
				want, got = nil, nil // what it renders isn't what it selects
			}
			// Each sees what it rendered as if it existed.
			node.SetObserved(want)
			ours.Observe(id, got)
		}
	}
}

// contents are the objects without the label that kro numbers them with, and without nulls.
func contents(objects []*unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, object := range objects {
		copied := object.DeepCopy()
		labels := copied.GetLabels()
		delete(labels, "kro.run/collection-index")
		delete(labels, "internal.kro.run/collection-index")
		if len(labels) == 0 {
			unstructured.RemoveNestedField(copied.Object, "metadata", "labels")
		} else {
			copied.SetLabels(labels)
		}
		out = append(out, withoutNulls(copied.Object).(map[string]any))
	}
	return out
}

// withoutNulls takes out what kro makes of an optional value that there isn't, and krop leaves out.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, element any) bool { return element == nil })
		for key, element := range v {
			v[key] = withoutNulls(element)
		}
		return v
	case []any:
		kept := slices.DeleteFunc(v, func(element any) bool { return element == nil })
		for i, element := range kept {
			kept[i] = withoutNulls(element)
		}
		return kept
	default:
		return value
	}
}
