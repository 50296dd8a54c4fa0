package kind

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definitions knows CustomResourceDefinition and its internal version.
var definitions = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// validated runs what kube-apiserver runs when a CustomResourceDefinition is created, and what
// serving it here needs beyond that. It returns copies with defaults.
func validated(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, *apiextensions.CustomResourceDefinition, error) {
	crd = crd.DeepCopy()
	definitions.Default(crd)
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: crd.Spec.Names}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
	}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := definitions.Convert(crd, internal, nil); err != nil {
		return nil, nil, fmt.Errorf("converting the definition %s: %w", crd.Name, err)
	}
	problems := validation.ValidateCustomResourceDefinition(context.Background(), internal)
	problems = append(problems, validateServing(crd)...)
	if len(problems) > 0 {
		return nil, nil, apierrors.NewInvalid(apiextensions.Kind("CustomResourceDefinition"), crd.Name, problems)
	}
	return crd, internal, nil
}

func validateServing(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	var problems field.ErrorList
	versions := field.NewPath("spec", "versions")
	if len(crd.Spec.Versions) != 1 {
		return append(problems, field.Invalid(versions, len(crd.Spec.Versions), "must be exactly one version"))
	}
	version := crd.Spec.Versions[0]
	if !version.Served {
		problems = append(problems, field.Invalid(versions.Index(0).Child("served"), false, "must be served"))
	}
	if version.Subresources == nil || version.Subresources.Status == nil {
		problems = append(problems, field.Required(versions.Index(0).Child("subresources", "status"), "users must not write status"))
	}
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		problems = append(problems, field.NotSupported(field.NewPath("spec", "conversion", "strategy"),
			crd.Spec.Conversion.Strategy, []apiextensionsv1.ConversionStrategyType{apiextensionsv1.NoneConverter}))
	}
	return problems
}

func servedVersion(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	return &crd.Spec.Versions[0]
}
