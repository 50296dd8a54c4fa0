package kro

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

const twoPlanes = `
kind: ResourceGraphDefinition
metadata: {name: planes}
spec:
  schema: {kind: Planes, apiVersion: v1, group: example.org, spec: {num: integer, str: string}}
  resources:
  - id: here
    template: {apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: "${schema.spec.num}"}}
  - id: there
    target: provider
    template: {apiVersion: example.org/v1, kind: Widget, metadata: {name: b}, spec: {size: "${schema.spec.str}"}}
  - id: againHere
    template: {apiVersion: example.org/v1, kind: Widget, metadata: {name: c}, spec: {size: "${here.spec.size}"}}
`

// widgets differ between planes: namespaced with a number at the consumer's, cluster-scoped with a
// text at the provider's.
type widgets struct{}

func (widgets) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (Kind, error) {
	sizeType := "integer"
	if target == v1alpha1.TargetProvider {
		sizeType = "string"
	}
	object := anyObject()
	object.Extensions = nil
	object.Properties["spec"] = spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"size": {SchemaProps: spec.SchemaProps{Type: []string{sizeType}}},
	}}}
	return Kind{GVR: gvk.GroupVersion().WithResource("widgets" + string(target)), Namespaced: target == v1alpha1.TargetConsumer, Schema: object}, nil
}

func TestKindsThatDifferBetweenPlanes(t *testing.T) {
	program, errs := Compile(blueprintFromYAML(t, []byte(twoPlanes)), testExport, widgets{}, Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	got := map[v1alpha1.NodeID]string{}
	for _, node := range program.Nodes {
		scope := "cluster"
		if node.Namespaced {
			scope = "namespace"
		}
		got[node.ID] = string(node.Target) + " " + node.GVR.Resource + " " + scope
	}
	want := map[v1alpha1.NodeID]string{
		"here": "consumer widgetsconsumer namespace", "there": "provider widgetsprovider cluster", "againHere": "consumer widgetsconsumer namespace",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The other way round, both types are wrong.
	swapped := strings.NewReplacer("spec.num}", "spec.str}", "spec.str}", "spec.num}").Replace(twoPlanes)
	_, errs = Compile(blueprintFromYAML(t, []byte(swapped)), testExport, widgets{}, Limits{})
	if len(errs) != 2 {
		t.Errorf("got %v, expected two errors", errs)
	}
}

func TestProgramSaysWhatWasCompiled(t *testing.T) {
	blueprint := chain(3)
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if program.Blueprint != "chain" || program.Export != testExport || program.SpecHash != engine.SpecHash(blueprint.Spec) {
		t.Errorf("got %s, %s, %s", program.Blueprint, program.Export, program.SpecHash)
	}
	for i, node := range program.Nodes {
		if node.Level != int32(i) || node.ConflictPolicy != v1alpha1.ConflictFail || node.DeletionPolicy != v1alpha1.DeletionDelete {
			t.Errorf("got %+v", node)
		}
	}
	if blueprint.Spec.Schema.Scope != "" || blueprint.Spec.Resources[0].Target != "" {
		t.Error("the blueprint was changed")
	}
}

func TestTheKindIsDescribedInFull(t *testing.T) {
	program, errs := Compile(blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: full}
spec:
  schema:
    kind: Full
    apiVersion: v1beta1
    shortNames: [fl]
    categories: [all]
    metadata: {labels: {a: b}, annotations: {c: d}}
    spec: {size: "integer | default=3 maximum=5", name: "string | required=true immutable=true"}
    status: {copy: "${schema.spec.size}"}
`)), testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	crd := program.CRD
	if crd.Name != "fulls.kro.run" || crd.Spec.Scope != apiextensionsv1.NamespaceScoped || crd.Labels["a"] != "b" || crd.Annotations["c"] != "d" {
		t.Errorf("got %s, %s, %v, %v", crd.Name, crd.Spec.Scope, crd.Labels, crd.Annotations)
	}
	if diff := cmp.Diff(apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "fulls", Singular: "full", ShortNames: []string{"fl"}, Kind: "Full", ListKind: "FullList", Categories: []string{"all"},
	}, crd.Spec.Names); diff != "" {
		t.Error(diff)
	}
	version := crd.Spec.Versions[0]
	var columns []string
	for _, column := range version.AdditionalPrinterColumns {
		columns = append(columns, column.Name)
	}
	if diff := cmp.Diff([]string{"State", "Ready", "Age"}, columns); diff != "" {
		t.Error(diff)
	}
	status := version.Schema.OpenAPIV3Schema.Properties["status"].Properties
	if diff := cmp.Diff([]string{"composition", "conditions", "copy", "state"}, slices.Sorted(maps.Keys(status))); diff != "" {
		t.Error(diff)
	}
	if status["copy"].Type != "integer" || version.Subresources == nil || version.Subresources.Status == nil {
		t.Errorf("got %s, %v", status["copy"].Type, version.Subresources)
	}
}

// TestCompositionSchemaHasAllFields compares the schema with the Go types that are stored under it.
func TestCompositionSchemaHasAllFields(t *testing.T) {
	composition := compositionSchema()
	rows := composition.Properties["resources"].Items.Schema
	for name, test := range map[string]struct {
		goType reflect.Type
		schema map[string]apiextensionsv1.JSONSchemaProps
	}{
		"composition": {reflect.TypeFor[v1alpha1.Composition](), composition.Properties},
		"row":         {reflect.TypeFor[v1alpha1.ComposedResource](), rows.Properties},
	} {
		var want []string
		for i := range test.goType.NumField() {
			want = append(want, strings.Split(test.goType.Field(i).Tag.Get("json"), ",")[0])
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(test.schema))); diff != "" {
			t.Errorf("%s: -type +schema:\n%s", name, diff)
		}
	}
}

func TestPrinterColumnsOfTheAuthorReplaceTheDefaults(t *testing.T) {
	blueprint := chain(1)
	blueprint.Spec.Schema.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Value", Type: "string", JSONPath: ".spec.value"}}
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if columns := program.CRD.Spec.Versions[0].AdditionalPrinterColumns; len(columns) != 1 || columns[0].Name != "Value" {
		t.Errorf("got %v", columns)
	}
}

// silent can't be asked.
type silent struct{}

func (silent) Resolve(v1alpha1.Target, schema.GroupVersionKind) (Kind, error) {
	return Kind{}, errors.New("connection refused")
}

func TestAPlaneThatCantBeAskedIsNotTheAuthorsFault(t *testing.T) {
	_, errs := Compile(chain(1), testExport, silent{}, Limits{})
	if len(errs) != 1 || errs[0].Type != field.ErrorTypeInternal {
		t.Errorf("got %v, expected one internal error", errs)
	}
}

// panicking stands for a bug anywhere below the compiler.
type panicking struct{}

func (panicking) Resolve(v1alpha1.Target, schema.GroupVersionKind) (Kind, error) { panic("a bug") }

func TestAPanicIsAnErrorOfTheBlueprint(t *testing.T) {
	if _, errs := Compile(chain(1), testExport, panicking{}, Limits{}); len(errs) != 1 {
		t.Errorf("got %v, expected one error", errs)
	}
}

func TestNothingIsMissingQuietly(t *testing.T) {
	for name, blueprint := range map[string]*v1alpha1.ResourceGraphDefinition{
		"empty":     {},
		"no kind":   {Spec: v1alpha1.ResourceGraphDefinitionSpec{Schema: &v1alpha1.Schema{}}},
		"no schema": {Spec: v1alpha1.ResourceGraphDefinitionSpec{Resources: []v1alpha1.Resource{{}}}},
	} {
		if _, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{}); len(errs) == 0 {
			t.Errorf("%s compiles", name)
		}
	}
}

func TestTooMuchIsRefusedAtOnce(t *testing.T) {
	for name, blueprint := range map[string]*v1alpha1.ResourceGraphDefinition{
		"5000 resources": chain(5000), "more expressions than allowed": manyExpressions(),
		"types that unfold to billions of fields": manyFields(),
	} {
		if _, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{}); len(errs) != 1 || !strings.HasPrefix(errs[0].Detail, budget.Prefix) {
			t.Errorf("%s: got %v, expected one error that names a bound", name, errs)
		}
	}
}

// manyFields is twelve types, each with eight fields of the next one.
func manyFields() *v1alpha1.ResourceGraphDefinition {
	const levels, width = 12, 8
	types := map[string]any{fmt.Sprintf("T%d", levels): map[string]any{"leaf": "string"}}
	for level := range levels {
		next := map[string]any{}
		for i := range width {
			next[fmt.Sprintf("f%d", i)] = fmt.Sprintf("[]T%d", level+1)
		}
		types[fmt.Sprintf("T%d", level)] = next
	}
	blueprint := chain(1)
	var err error
	if blueprint.Spec.Schema.Types.Raw, err = json.Marshal(types); err != nil {
		panic(err)
	}
	blueprint.Spec.Schema.Spec.Raw = []byte(`{"a": "T0"}`)
	return blueprint
}

func manyExpressions() *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(1)
	data := make(map[string]string)
	for i := range budget.Expressions.Default {
		data["k"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+strings.Repeat("y", i/1300)] = strings.Repeat("${1}", 10)
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data})
	if err != nil {
		panic(err)
	}
	blueprint.Spec.Resources[0].Template.Raw = raw
	return blueprint
}

// TestStackedDiamondsTakeNoLonger plans a graph with 2^60 paths from top to bottom.
func TestStackedDiamondsTakeNoLonger(t *testing.T) {
	blueprint := &v1alpha1.ResourceGraphDefinition{}
	blueprint.Name = "diamonds"
	blueprint.Spec.Schema = &v1alpha1.Schema{Kind: "Diamonds", APIVersion: "v1", Group: "example.org"}
	add := func(id string, reads ...string) {
		data := map[string]string{}
		for _, read := range reads {
			data[read] = "${" + read + ".metadata.name}"
		}
		raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": strings.ToLower(id)}, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		resource := v1alpha1.Resource{ID: id}
		resource.Template.Raw = raw
		blueprint.Spec.Resources = append(blueprint.Spec.Resources, resource)
	}
	add("top0")
	for i := range 60 {
		n := string(rune('0'+i/10)) + string(rune('0'+i%10))
		below := "top0"
		if i > 0 {
			below = "t" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		}
		add("l"+n, below)
		add("r"+n, below)
		add("t"+n, "l"+n, "r"+n)
	}
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	instance := oneInstance(nil)
	observed := engine.Observed{}
	for range 125 {
		plan := program.Plan(instance, "c", observed, nil)
		done := true
		for _, node := range plan.Nodes {
			for _, child := range node.Children {
				if child.Observed == nil {
					observed[child.Key], done = child.Object, false
				}
			}
		}
		if done {
			if last := plan.Nodes[len(plan.Nodes)-1]; !last.Ready || last.Level != 120 {
				t.Errorf("the last node is %s, level %d", last.Outcome, last.Level)
			}
			return
		}
	}
	t.Error("the plan doesn't become complete")
}

func TestProgramsArePlannedConcurrently(t *testing.T) {
	program := oneExpression(t, "schema.spec.text + string(schema.spec.n)", Limits{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				if plan := program.Plan(oneInstance(map[string]any{"text": "x"}), "c", nil, nil); plan.Nodes[0].Outcome != engine.Failed {
					t.Errorf("got %s", plan.Nodes[0].Outcome)
				}
			}
		})
	}
	wait.Wait()
}

// TestErrorsOfDeepTypesTakeNoLonger: to look at a field is not to unfold all that its type is made of.
func TestErrorsOfDeepTypesTakeNoLonger(t *testing.T) {
	const depth = 100
	var fields, types []string
	for i := range depth {
		fields = append(fields, fmt.Sprintf(`"f%d":"T%d | minimum=x"`, i, i))
		types = append(types, fmt.Sprintf(`"T%d":{"next":"T%d","other":"string"}`, i, i+1))
	}
	types = append(types, fmt.Sprintf(`"T%d":"string"`, depth))
	blueprint := chain(1)
	blueprint.Spec.Schema.Spec.Raw = []byte("{" + strings.Join(fields, ",") + "}")
	blueprint.Spec.Schema.Types.Raw = []byte("{" + strings.Join(types, ",") + "}")
	c := newCompilation(blueprint, kindsForTest(t), Limits{})
	start := time.Now()
	c.checkStructure()
	if len(c.errs) != depth {
		t.Errorf("got %d errors, want %d: %v", len(c.errs), depth, c.errs.ToAggregate())
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %s", took)
	}
}

func TestAnOutlineHasTheKindsThatAreKnownWhateverElseIsWrong(t *testing.T) {
	blueprint := chain(2)
	blueprint.Spec.Schema.Kind = "not a kind"
	blueprint.Spec.Resources[1].Template.Raw = []byte(`{"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}}`)
	nodes := Outline(blueprint, kindsForTest(t), Limits{})
	if len(nodes) != 1 || string(nodes[0].ID) != blueprint.Spec.Resources[0].ID || nodes[0].GVR.Resource == "" || nodes[0].Target != v1alpha1.TargetConsumer {
		t.Errorf("%+v", nodes)
	}
}

// hostless has every kind, but no host.
type hostless struct{ widgets }

func (h hostless) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (Kind, error) {
	if target == v1alpha1.TargetHost {
		return Kind{}, &NoPlaneError{Target: target, Remedy: "give it one"}
	}
	return h.widgets.Resolve(target, gvk)
}

func TestTargetOfAPlaneThatIsNotThereIsRefusedWithWhatToDo(t *testing.T) {
	onHost := strings.Replace(twoPlanes, "target: provider", "target: host", 1)
	if _, errs := Compile(blueprintFromYAML(t, []byte(onHost)), testExport, widgets{}, Limits{}); len(errs) == 0 || strings.Contains(errs.ToAggregate().Error(), "target") {
		t.Errorf("with a host: %v", errs.ToAggregate()) // the types of its widgets differ, and that is all
	}
	_, errs := Compile(blueprintFromYAML(t, []byte(onHost)), testExport, hostless{}, Limits{})
	if len(errs) != 1 || errs[0].Type != field.ErrorTypeInvalid || errs[0].Field != "spec.resources[1].target" {
		t.Fatalf("got %v, want one error at the target", errs.ToAggregate())
	}
	if detail := errs[0].Detail; !strings.Contains(detail, `"there"`) || !strings.Contains(detail, "host") || !strings.Contains(detail, "give it one") {
		t.Errorf("%q names not the resource, the plane and the remedy", detail)
	}
}
