package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// The kinds of testdata/recompile.
var (
	machines = schema.GroupVersionResource{Group: "recompile.example.org", Version: "v1alpha1", Resource: "machines"}
	parts    = schema.GroupVersionResource{Group: "recompile.example.org", Version: "v1", Resource: "parts"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const partsDefinition = "parts.recompile.example.org"

// TestKindsOfABlueprintComeChangeAndGo is one story, since each step begins where the one before it ended. krop's resync is
// an hour away: whatever it notices, it notices by an event.
func TestKindsOfABlueprintComeChangeAndGo(t *testing.T) {
	provider, consumer := theOffers(t), newUser(t, "machinist")
	m := &machinery{t: t, provider: provider, consumer: consumer}

	m.refused("spec.resources[1].template.kind") // the kind isn't there yet
	provider.kubectl("apply", "-f", testdata("recompile/kind.yaml"))
	provider.kubectl("wait", "--for=condition=Established", "crd/"+partsDefinition)
	eventually(t, "the blueprint is accepted, once its kind is there", func() error { return m.apply() })
	provider.kubectl("wait", "--for=condition=Ready", "rgd/machines", "--timeout=30s")
	m.bind()
	before := m.create("before", false)
	eventually(t, "the instance has all of its children", func() error { return m.ready("before") })

	m.define("size: {type: string}", "colour: {type: string}")
	eventually(t, "an edit that uses a new field is accepted", func() error {
		return m.apply("        size: ${schema.spec.size}\n$", "        size: ${schema.spec.size}\n        colour: red\n")
	})
	eventually(t, "instances follow", func() error { return m.provider.has(parts, m.part(before), "red", "spec", "colour") })

	m.define("size: {type: integer}", "colour: {type: string}")
	eventually(t, "that the blueprint doesn't compile any more is told by field", func() error {
		return m.compiles("False", "spec.resources[1].template.spec.size")
	})
	must(t, conditionIs(m.blueprint(), "Ready", "False"))
	must(t, consumer.has(machines, "before", "5", "spec", "size"))
	m.create("meanwhile", true)
	eventually(t, "instances are composed as the blueprint compiled last", func() error { return m.ready("meanwhile") })
	must(t, bed.Krop.Stop())
	must(t, bed.Krop.Start(t.Context()))
	m.create("restarted", true)
	eventually(t, "so they are after a restart", func() error { return m.ready("restarted") })
	must(t, m.compiles("False", "spec.resources[1].template.spec.size"))

	m.define("size: {type: string}", "colour: {type: string}")
	eventually(t, "the blueprint compiles again", func() error { return m.compiles("True", "") })
	must(t, conditionIs(m.blueprint(), "Ready", "True"))

	must(t, provider.Resource(crds).Delete(t.Context(), partsDefinition, metav1.DeleteOptions{}))
	eventually(t, "that a kind is gone is told", func() error { return m.compiles("False", "spec.resources[1].template.kind") })
	must(t, consumer.has(machines, "before", "5", "spec", "size"))
	provider.kubectl("apply", "-f", testdata("recompile/kind.yaml"))
	m.define("size: {type: string}", "colour: {type: string}")
	eventually(t, "the blueprint compiles with the kind that is back", func() error { return m.compiles("True", "") })
	eventually(t, "what could not be composed meanwhile is", func() error {
		return m.provider.has(parts, m.part(before), "red", "spec", "colour")
	})

	m.breaksOnlyIfAllowed()
}

// machinery is the offering of testdata/recompile with those who have to do with it.
type machinery struct {
	t                  *testing.T
	provider, consumer actor
	text               string // of the blueprint, as it was applied last
}

// breaksOnlyIfAllowed edits the schema so that what is stored doesn't fit it.
func (m *machinery) breaksOnlyIfAllowed() {
	m.t.Helper()
	const was, tightened = `size: string | default="5"`, `size: string | default="50" minLength=2`
	err := m.apply(was, tightened)
	fields := causesOf(err)
	if !apierrors.IsInvalid(err) || len(fields) != 2 || fields[0] != "spec.schema.spec.size" {
		m.t.Fatalf("a breaking edit is answered with %v, causes %v", err, fields)
	}
	must(m.t, m.apply("metadata:\n  name: machines", "metadata:\n  name: machines\n  annotations: {"+v1alpha1.AnnotationAllowBreaking+": \"true\"}", was, tightened))
	revision, _, _ := unstructured.NestedString(m.blueprint().Object, "status", "observedSpecHash")
	eventually(m.t, "the loop goes on with what doesn't fit", func() error {
		return m.consumer.has(machines, "before", revision, "status", "composition", "revision")
	})
	must(m.t, m.consumer.has(machines, "before", "5", "spec", "size"))
	must(m.t, m.ready("before"))

	// what was wrong before, and isn't touched, is let pass
	m.consumer.patch(machines, "before", `{"metadata":{"labels":{"seen":"true"}}}`)
	_, err = m.consumer.in(machines).Patch(m.t.Context(), "before", mergePatch, []byte(`{"spec":{"size":"7"}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !slices.Contains(causesOf(err), "spec.size") {
		m.t.Errorf("what doesn't fit is answered with %v", err)
	}
	m.consumer.patch(machines, "before", `{"spec":{"size":"70"}}`)
	eventually(m.t, "the children follow what fits", func() error { return m.consumer.has(configMaps, "before", "70", "data", "size") })
}

// apply applies the blueprint, with pairs of what it says replaced by something else. What is accepted stays so.
func (m *machinery) apply(replace ...string) error {
	m.t.Helper()
	if m.text == "" {
		m.text = readTestdata(m.t, "recompile/blueprint.yaml") + "\n"
	}
	text := m.text
	for i := 0; i < len(replace); i += 2 {
		if at, last := strings.CutSuffix(replace[i], "$"); last {
			cut, found := strings.CutSuffix(text, at)
			if !found {
				m.t.Fatalf("the blueprint does not end with %q", at)
			}
			text = cut + replace[i+1]
			continue
		}
		if !strings.Contains(text, replace[i]) {
			m.t.Fatalf("the blueprint does not have %q", replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	blueprint := &unstructured.Unstructured{}
	must(m.t, yaml.Unmarshal([]byte(text), blueprint))
	_, err := m.provider.Resource(blueprints).Apply(m.t.Context(), "machines", blueprint, metav1.ApplyOptions{FieldManager: "author", Force: true})
	if err == nil {
		m.text = text
	}
	return err
}

// refused wants the blueprint to be refused for a field.
func (m *machinery) refused(field string) {
	m.t.Helper()
	if err := m.apply(); !apierrors.IsInvalid(err) || !slices.Contains(causesOf(err), field) {
		m.t.Fatalf("the answer is %v, want a refusal for %s", err, field)
	}
}

// define changes the fields of the provider's kind.
func (m *machinery) define(fields ...string) {
	m.t.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties", "value": %s}]`,
		asJSON(m.t, "{"+strings.Join(fields, ", ")+"}"))
	m.provider.kubectl("patch", "crd", partsDefinition, "--type=json", "-p", patch)
}

func asJSON(t *testing.T, text string) string {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	return string(out)
}

func (m *machinery) bind() {
	m.t.Helper()
	m.consumer.kubectl("apply", "-f", testdata("recompile/binding.yaml"))
	m.consumer.kubectl("wait", "--for=condition=Ready", "apibinding/machines", "--timeout=60s")
	eventually(m.t, "the binding is served", func() error {
		_, err := m.consumer.Resource(machines).List(m.t.Context(), metav1.ListOptions{})
		return err
	})
}

func (m *machinery) create(name string, bare bool) *unstructured.Unstructured {
	m.t.Helper()
	created, err := m.consumer.in(machines).Create(m.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "recompile.example.org/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"bare": bare},
	}}, metav1.CreateOptions{})
	must(m.t, err)
	return created
}

func (m *machinery) ready(name string) error {
	if err := m.consumer.has(configMaps, name, "5", "data", "size"); err != nil {
		return err
	}
	instance, err := m.consumer.in(machines).Get(m.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return conditionIs(instance, "Ready", "True")
}

// part is the name of the part that an instance has in the provider's workspace.
func (m *machinery) part(instance *unstructured.Unstructured) string {
	name, _ := row(m.consumer.get(machines, instance.GetName()), "part")["name"].(string)
	return name
}

func (m *machinery) blueprint() *unstructured.Unstructured {
	m.t.Helper()
	stored, err := m.provider.Resource(blueprints).Get(m.t.Context(), "machines", metav1.GetOptions{})
	must(m.t, err)
	return stored
}

// compiles says what is wrong unless the condition Compiled is as wanted, and its message has a text.
func (m *machinery) compiles(status, text string) error {
	blueprint, err := m.provider.Resource(blueprints).Get(m.t.Context(), "machines", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := conditionIs(blueprint, "Compiled", status); err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(blueprint.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if message, _ := condition["message"].(string); condition["type"] == "Compiled" && !strings.Contains(message, text) {
			return fmt.Errorf("the message is %q, want it to have %q", message, text)
		}
	}
	return nil
}

// causesOf are the fields that an answer names.
func causesOf(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}
