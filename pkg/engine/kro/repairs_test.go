package kro

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"go.opendefense.cloud/krop/pkg/engine"
)

func TestMapsAllowValuesAndRulesSayWhichTheyAre(t *testing.T) {
	program, errs := Compile(blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: maps}
spec:
  schema:
    kind: Mapped
    apiVersion: v1
    spec:
      labels: map[string]string
      parts: '[]string | maxItems=5 validation="self.all(p, p != ''x'')"'
`)), testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	spec := program.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if values := spec["labels"].AdditionalProperties; values == nil || !values.Allows || values.Schema == nil {
		t.Errorf("labels allow %+v", values)
	}
	if rules := spec["parts"].XValidations; len(rules) != 1 || rules[0].Message != "" || rules[0].Rule != "self.all(p, p != 'x')" {
		t.Errorf("rules are %+v", rules)
	}
}

func TestLiteralsInTheSchemaCanHaveQuotes(t *testing.T) {
	program, errs := Compile(blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: quotes}
spec:
  schema:
    kind: Quoted
    apiVersion: v1
    spec:
      text: string | default="say \"hi\""
      flag: boolean | default=True
      choice: string | enum="a,b" default=a
`)), testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	spec := program.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for name, want := range map[string]string{"text": `"say \"hi\""`, "flag": "true", "choice": `"a"`} {
		if got := string(spec[name].Default.Raw); got != want {
			t.Errorf("the default of %s is %s, expected %s", name, got, want)
		}
	}
}

func TestImmutableFieldsCantBeSetOrUnset(t *testing.T) {
	program, errs := Compile(blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: immutable}
spec:
  schema:
    kind: Fixed
    apiVersion: v1
    spec:
      optional: string | immutable=true
      needed: string | required=true immutable=true
      nested: {namespace: string | immutable=true}
`)), testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	validator := structuralValidator(t, program)
	object := func(spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "kro.run/v1", "kind": "Fixed", "metadata": map[string]any{"name": "x"}, "spec": spec}
	}
	with := func(optional any, namespace any) map[string]any {
		spec := map[string]any{"needed": "x", "nested": map[string]any{}}
		if optional != nil {
			spec["optional"] = optional
		}
		if namespace != nil {
			spec["nested"] = map[string]any{"namespace": namespace}
		}
		return object(spec)
	}
	for name, test := range map[string]struct {
		before, after map[string]any
		allowed       bool
	}{
		"kept":         {with("a", "n"), with("a", "n"), true},
		"kept unset":   {with(nil, nil), with(nil, nil), true},
		"changed":      {with("a", nil), with("b", nil), false},
		"set":          {with(nil, nil), with("a", nil), false},
		"unset":        {with("a", nil), with(nil, nil), false},
		"nested set":   {with(nil, nil), with(nil, "n"), false},
		"nested unset": {with(nil, "n"), with(nil, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if violated := validator(test.after, test.before); (len(violated) == 0) != test.allowed {
				t.Errorf("got %v", violated)
			}
		})
	}
}

// structuralValidator evaluates the rules of the program's kind, as an API server does.
func structuralValidator(t *testing.T, program *engine.Program) func(object, old map[string]any) field.ErrorList {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(program.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	validator := structuralcel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(object, old map[string]any) field.ErrorList {
		errs, _ := validator.Validate(t.Context(), nil, structural, object, old, celconfig.RuntimeCELCostBudget)
		return errs
	}
}
