package kind

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
)

// columns are what kubectl get prints.
type columns struct{ rest.TableConvertor }

func (k *Kind) buildColumns(*apiextensions.CustomResourceDefinition) error {
	definitions := k.version.AdditionalPrinterColumns
	if len(definitions) == 0 {
		definitions = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
			Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		}}
	}
	convertor, err := tableconvertor.New(definitions)
	if err != nil {
		return fmt.Errorf("reading the printer columns: %w", err)
	}
	k.columns = columns{convertor}
	return nil
}
