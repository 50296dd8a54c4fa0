package kind

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// customResourceStrategy is what upstream's strategies of custom resources do; their types are
// unexported.
type customResourceStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy

	GetAttrs(object runtime.Object) (labels.Set, fields.Set, error)
	MatchCustomResourceDefinitionStorage(labels.Selector, fields.Selector) storage.SelectionPredicate
}

func (k *Kind) buildStrategies(internal *apiextensions.CustomResourceDefinition) error {
	root := openAPISchema(internal)
	whole, _, err := validation.NewSchemaValidator(root)
	if err != nil {
		return fmt.Errorf("making the validator: %w", err)
	}
	var statusOnly validation.SchemaValidator
	if status, ok := root.Properties["status"]; ok {
		if statusOnly, _, err = validation.NewSchemaValidator(&status); err != nil {
			return fmt.Errorf("making the validator of status: %w", err)
		}
	}
	scale := subresources(internal).Scale
	main := customresource.NewStrategy(k.typer(), k.Namespaced(), k.GVK(), whole, statusOnly,
		k.schema.schema, subresources(internal).Status, scale, k.version.SelectableFields)
	k.strategy = main
	k.status = customresource.NewStatusStrategy(main)
	return nil
}

func subresources(internal *apiextensions.CustomResourceDefinition) *apiextensions.CustomResourceSubresources {
	if internal.Spec.Subresources != nil {
		return internal.Spec.Subresources
	}
	return internal.Spec.Versions[0].Subresources
}
