package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
)

func keyOf(workspace, name string) v1alpha1.ExportKey {
	return v1alpha1.ExportKey{Cluster: logicalcluster.Name(workspace), Name: name + ".example.org"}
}

// composed is a program of the workspace that writes kinds of these exports, each as a node of its own.
func composed(workspace, name string, origins ...v1alpha1.ExportKey) *engine.Program {
	program := &engine.Program{Blueprint: name, Export: keyOf(workspace, name)}
	for i, origin := range origins {
		program.Nodes = append(program.Nodes, engine.Node{ID: v1alpha1.NodeID(fmt.Sprint("n", i)), Origin: origin})
	}
	return program
}

func catalogOf(programs ...*engine.Program) *registry.Catalog {
	catalog := &registry.Catalog{}
	for _, program := range programs {
		catalog.Set(&registry.Served{Export: program.Export, Program: program})
	}
	return catalog
}

func TestALoopIsShownByBlueprintAndWorkspace(t *testing.T) {
	b, c := composed("w2", "b", keyOf("w9", "elsewhere"), keyOf("w3", "c")), composed("w3", "c", v1alpha1.ExportKey{}, keyOf("w1", "a"))
	for name, test := range map[string]struct {
		catalog *registry.Catalog
		program *engine.Program
		want    string
	}{
		"through two workspaces": {catalogOf(b, c), composed("w1", "a", v1alpha1.ExportKey{}, keyOf("w2", "b")), "n1: a (workspace w1) -> b (workspace w2) -> c (workspace w3) -> a (workspace w1)"},
		"itself":                 {catalogOf(), composed("w1", "a", keyOf("w1", "a")), "n0: a (workspace w1) -> a (workspace w1)"},
		"an edit that ends it":   {catalogOf(b, c, composed("w1", "a", keyOf("w2", "b"))), composed("w1", "a"), ""},
		"same name elsewhere":    {catalogOf(b, c), composed("w4", "a", keyOf("w2", "b")), ""},
		"another's loop":         {catalogOf(composed("w2", "b", keyOf("w3", "c")), composed("w3", "c", keyOf("w2", "b"))), composed("w1", "a", keyOf("w2", "b")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			var cycle *registry.CycleError
			if errors.As(test.catalog.Cycle(test.program), &cycle) {
				names := make([]string, 0, len(cycle.Blueprints))
				for _, program := range cycle.Blueprints {
					names = append(names, fmt.Sprintf("%s (workspace %s)", program.Blueprint, program.Export.Cluster))
				}
				got = string(cycle.Node) + ": " + strings.Join(names, " -> ")
				if !strings.Contains(cycle.Error(), strings.Join(names, " -> ")) {
					t.Errorf("the message doesn't show the way round: %v", cycle)
				}
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHeightCountsServedLayersBelow(t *testing.T) {
	leaf := composed("w1", "leaf", v1alpha1.ExportKey{}, keyOf("w1", "not-served"))
	middle := composed("w2", "middle", keyOf("w1", "leaf"))
	top := composed("w3", "top", keyOf("w1", "leaf"), keyOf("w2", "middle"))
	ring := []*engine.Program{composed("w4", "ring1", keyOf("w4", "ring2")), composed("w4", "ring2", keyOf("w4", "ring1"))}
	catalog := catalogOf(append(ring, leaf, middle, top)...)
	for export, want := range map[v1alpha1.ExportKey]int{
		leaf.Export: 0, middle.Export: 1, top.Export: 2, keyOf("w1", "not-served"): 0, ring[0].Export: budget.Nesting.Default,
	} {
		if got := catalog.Height(export); got != want {
			t.Errorf("%s has height %d, want %d", export, got, want)
		}
	}
}

// TestHeightOfStackedDiamondsIsFoundAtOnce has 2^60 ways from top to bottom.
func TestHeightOfStackedDiamondsIsFoundAtOnce(t *testing.T) {
	var programs []*engine.Program
	for i := range 60 {
		next := fmt.Sprint("d", i+1)
		programs = append(programs, composed("w", fmt.Sprint("d", i), keyOf("w", next), keyOf("w", next)))
	}
	catalog := catalogOf(programs...)
	if got := catalog.Height(keyOf("w", "d0")); got != budget.Nesting.Default {
		t.Errorf("height %d", got)
	}
	if err := catalog.Cycle(composed("w", "above", keyOf("w", "d0"))); err != nil {
		t.Errorf("a loop was found: %v", err)
	}
}

func nested(depth string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "A", "metadata": map[string]any{"name": "a"}}}
	object.SetLabels(map[string]string{v1alpha1.LabelInstanceUID: "1", v1alpha1.LabelConsumerCluster: "c"})
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationDepth: depth})
	return object
}

func TestInstancesThatAreTooDeepOrWithoutEndAreRefused(t *testing.T) {
	sound := composed("w1", "a")
	ring := composed("w1", "a", keyOf("w2", "b"))
	nesting := registry.Nesting{Catalog: catalogOf(ring, composed("w2", "b", keyOf("w1", "a")))}
	if err := nesting.AdmitNew(sound, nested("8")); err != nil {
		t.Errorf("the deepest that is allowed: %v", err)
	}
	if err := nesting.AdmitNew(sound, nested("9")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), budget.Nesting.Name) {
		t.Errorf("one deeper: %v", err)
	}
	if err := nesting.Admit(nested("9")); !apierrors.IsInvalid(err) {
		t.Errorf("an update of one deeper: %v", err)
	}
	if err := nesting.AdmitNew(ring, nested("1")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "a (workspace w1) -> b (workspace w2) -> a (workspace w1)") {
		t.Errorf("one of a loop: %v", err)
	}
	if err := nesting.Admit(nested("1")); err != nil {
		t.Errorf("an update of one of a loop: %v", err)
	}
}
