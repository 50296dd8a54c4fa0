package kind

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

func (k *Kind) buildOpenAPI(*apiextensions.CustomResourceDefinition) error {
	openAPI, err := builder.BuildOpenAPIV3(k.crd, k.version.Name, builder.Options{})
	if err != nil {
		return fmt.Errorf("building OpenAPI: %w", err)
	}
	k.openAPI = openAPI
	return nil
}

// typeConverter gives server-side apply the types of fields: which lists are maps, which are atomic.
func (k *Kind) typeConverter() (managedfields.TypeConverter, error) {
	converter, err := managedfields.NewTypeConverter(k.openAPI.Components.Schemas, false)
	if err != nil {
		return nil, fmt.Errorf("reading types for server-side apply: %w", err)
	}
	return discreetConverter{converter}, nil
}
