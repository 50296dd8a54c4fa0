package kro

import "testing"

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
