package kro

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"go.opendefense.cloud/krop/pkg/engine"
)

// anyMarkers is a blueprint whose schema has some of everything.
func anyMarkers(t *testing.T) *engine.Program {
	t.Helper()
	program, errs := Compile(blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: full}
spec:
  schema:
    kind: Full
    apiVersion: v1
    types:
      Node: {name: string | required=true, port: integer | default=80 minimum=1}
      Unused: {size: "integer | default=3"}
    spec:
      size: integer | default=3 maximum=5 validation="self > 1"
      both: string | required=true default="x"
      nodes: "[]Node"
      labels: "map[string]string"
      deep: "map[string]map[string]Node"
      free: object
      nothing: object | default=null
    status: {copy: "${schema.spec.size}", labels: "${schema.spec.labels}"}
`)), testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return program
}

// TestTheDefinitionIsValid has an API server's validation look at the whole of it, with the parts that
// the compiler adds after it has validated the author's.
func TestTheDefinitionIsValid(t *testing.T) {
	crd := anyMarkers(t).CRD
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{"v1"}
	if errs := validation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	if _, found := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[unusedTypes]; found {
		t.Error("types are a field of the kind")
	}
}

// TestTheDefinitionIsAsItIsWhenReadBack compares what is made in memory with what is left of it after
// it was stored.
func TestTheDefinitionIsAsItIsWhenReadBack(t *testing.T) {
	crd := anyMarkers(t).CRD
	raw, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	stored := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, stored); err != nil {
		t.Fatal(err)
	}
	// An empty list isn't stored.
	if root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema; len(root.Required) == 0 {
		root.Required = nil
	}
	if diff := cmp.Diff(stored, crd); diff != "" {
		t.Error(diff)
	}
}

// TestADefaultAppliesToARequiredField: defaults are filled in before anything is required, so that both
// markers together, which kro's documentation has, are no contradiction.
func TestADefaultAppliesToARequiredField(t *testing.T) {
	program := anyMarkers(t)
	instance := instanceFromYAML(t, []byte(`{apiVersion: kro.run/v1, kind: Full, metadata: {name: a}, spec: {}}`))
	withDefaults(t, program, instance)
	if got := instance.Object["spec"].(map[string]any)["both"]; got != "x" {
		t.Errorf("got %v, want the default", got)
	}
}
