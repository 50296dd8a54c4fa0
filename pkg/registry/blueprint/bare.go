package blueprint

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// bareProgram is a stored blueprint's program as far as it is known without compiling: nothing can be
// composed with it, but stored instances can be read, and torn down by their inventories. For
// blueprints that don't compile any more: a kind that they use is gone, or their workspace is.
func bareProgram(blueprint *v1alpha1.ResourceGraphDefinition) *engine.Program {
	return &engine.Program{
		Blueprint: blueprint.Name,
		Export:    exportKey(blueprint),
		SpecHash:  engine.SpecHash(blueprint.Spec),
		CRD:       bareDefinition(blueprint),
	}
}

// bareDefinition is the blueprint's kind with a schema that keeps every field as it is.
func bareDefinition(blueprint *v1alpha1.ResourceGraphDefinition) *apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	spec := engine.Defaulted(blueprint.Spec)
	plural, _, _ := strings.Cut(blueprint.Status.ExportedAPI, ".")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = blueprint.Status.ExportedAPI
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: spec.Schema.Group,
		Scope: apiextensionsv1.ResourceScope(spec.Schema.Scope),
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: plural, Singular: strings.ToLower(spec.Schema.Kind), Kind: spec.Schema.Kind, ListKind: spec.Schema.Kind + "List",
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: spec.Schema.APIVersion, Served: true, Storage: true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &anything},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}
	return crd
}
