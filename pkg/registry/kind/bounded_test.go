package kind

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
)

// tested is a kind whose color has to fit the pattern and the rule.
func tested(t *testing.T, pattern, rule string) *Kind {
	t.Helper()
	crd := definition(t, newGroup(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		color := spec.Properties["color"]
		color.Pattern = pattern
		if rule != "" {
			color.XValidations = apiextensionsv1.ValidationRules{{Rule: rule}}
		}
		spec.Properties["color"] = color
	})
	kind, err := New(crd)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func colored(k *Kind, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.GVK().GroupVersion().String(), "kind": k.GVK().Kind,
		"metadata": map[string]any{"name": "one", "namespace": namespace}, "spec": map[string]any{"color": color, "size": int64(3)},
	}}
}

// TestTextIsTestedWithinBounds has tests of which each would take minutes, or hours.
func TestTextIsTestedWithinBounds(t *testing.T) {
	const long = 700_000
	everything := strings.Repeat("(.{1000})?", 9) + "b"
	for name, c := range map[string]struct {
		pattern, rule string
		color         string
		says          string
	}{
		"a pattern":           {everything, "", strings.Repeat("a", long), budget.PatternSteps.Name},
		"a pattern in a rule": {"", "self.matches('" + everything + "')", strings.Repeat("a", long), budget.PatternSteps.Name},
		"a search in a rule":  {"", "self.find('" + everything + "') == ''", strings.Repeat("a", long), budget.PatternSteps.Name},
		"a quantity":          {"", "isQuantity(self)", "1e-2147483647", "three digits"},
	} {
		t.Run(name, func(t *testing.T) {
			kind := tested(t, c.pattern, c.rule)
			began := time.Now()
			problems := kind.Normalize(context.Background(), colored(kind, c.color), nil)
			if err := problems.ToAggregate(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %.500v, want something with %q", err, c.says)
			}
			if took := time.Since(began); took > validationTime {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestWhatIsTestedQuicklyIsTested(t *testing.T) {
	kind := tested(t, "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "isQuantity(self) && quantity(self).isGreaterThan(quantity('1'))")
	if problems := kind.Normalize(context.Background(), colored(kind, "12e3"), nil); len(problems) > 0 {
		t.Error(problems.ToAggregate())
	}
	if problems := kind.Normalize(context.Background(), colored(kind, "-"), nil); len(problems) == 0 {
		t.Error("what doesn't fit the pattern was let pass")
	}
}

// TestWhatWasStoredBeforeItWasTestedCanBeDeleted removes a finalizer.
func TestWhatWasStoredBeforeItWasTestedCanBeDeleted(t *testing.T) {
	kind := tested(t, strings.Repeat("(.{1000})?", 9)+"b", "")
	object := func(finalizers ...string) *unstructured.Unstructured {
		out := colored(kind, strings.Repeat("a", 700_000))
		out.SetFinalizers(finalizers)
		out.SetResourceVersion("1")
		out.SetGeneration(1)
		out.SetUID("u")
		return out
	}
	if problems := kind.Normalize(context.Background(), object(), object("example.org/wait")); len(problems) > 0 {
		t.Errorf("%.500v", problems.ToAggregate())
	}
	changed := object()
	changed.Object["spec"] = map[string]any{"color": strings.Repeat("b", 700_000), "size": int64(3)}
	if problems := kind.Normalize(context.Background(), changed, object()); len(problems) == 0 {
		t.Error("a change was let pass")
	}
}
