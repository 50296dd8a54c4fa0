package kro

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// SpecSchema is the schema of what consumers set, which depends on no kind: it is known of a blueprint that doesn't
// compile, too. It is nil if the author's fields themselves can't be understood.
func SpecSchema(blueprint *v1alpha1.ResourceGraphDefinition, limits Limits) (schema *apiextensionsv1.JSONSchemaProps) {
	defer func() {
		if recover() != nil {
			schema = nil // Compile says what there is to say
		}
	}()
	c := newCompilation(blueprint, nil, limits)
	if c.spec.Schema == nil || !c.checkSize() {
		return nil
	}
	c.checkStructure()
	schema, err := c.fields.schema()
	if err != nil || c.fields.noFields {
		return nil
	}
	return schema
}

// OwnStatusFields are the fields of status that krop gives every kind.
func OwnStatusFields() []string { return append([]string{"conditions"}, ownStatus...) }
