package kind

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

type edit = func(*apiextensionsv1.CustomResourceDefinition)

func root(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestNewRefusesWhatKubeAPIServerWouldRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		edit  edit
		field string
	}{
		"no schema": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil },
			"spec.versions[0].schema.openAPIV3Schema",
		},
		"not structural": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				root(crd).Properties["spec"] = apiextensionsv1.JSONSchemaProps{}
			},
			"spec.validation.openAPIV3Schema.properties[spec].type",
		},
		"a rule that doesn't compile": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				root(crd).XValidations = apiextensionsv1.ValidationRules{{Rule: "self.nothing > 1"}}
			},
			"spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule",
		},
		"a default of the wrong type": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				size := root(crd).Properties["spec"].Properties["size"]
				size.Default = &apiextensionsv1.JSON{Raw: []byte(`"three"`)}
				root(crd).Properties["spec"].Properties["size"] = size
			},
			"spec.validation.openAPIV3Schema.properties[spec].properties[size].default",
		},
		"wrong name": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Name = "gadgets.example.com" },
			"metadata.name",
		},
		"a column with a broken path": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[0].AdditionalPrinterColumns[0].JSONPath = "spec[["
			},
			"spec.additionalPrinterColumns[0].JSONPath",
		},
		"no status subresource": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil },
			"spec.versions[0].subresources.status",
		},
		"not served": {
			func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false },
			"spec.versions[0].served",
		},
		"two versions": {
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				second := *crd.Spec.Versions[0].DeepCopy()
				second.Name, second.Storage = "v2", false
				crd.Spec.Versions = append(crd.Spec.Versions, second)
			},
			"spec.versions",
		},
	} {
		_, err := New(definition(t, "bad.example.com", test.edit))
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fields := causes(err); !slices.Contains(fields, test.field) {
			t.Errorf("%s: caused by %v, not by %s", name, fields, test.field)
		}
	}
}

// causes are the fields that an error names.
func causes(err error) (fields []string) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

func TestNewLeavesTheDefinitionAlone(t *testing.T) {
	crd := definition(t, newGroup())
	before := crd.DeepCopy()
	k := newKind(t, crd)
	k.CRD().Spec.Names.Kind = "Changed"
	k.Names().ShortNames[0] = "changed"
	if !equal(crd, before) {
		t.Error("the definition was changed")
	}
	if k.GVK().Kind != "Widget" || k.ShortNames()[0] != "wd" {
		t.Error("the kind was changed through what it returned")
	}
}

func equal(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

func TestAccessorsFillInDefaults(t *testing.T) {
	group := newGroup()
	k := newKind(t, definition(t, group, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Names.Singular, crd.Spec.Names.ListKind = "", ""
	}))
	if got := k.GVR().String(); got != group+"/v1, Resource=widgets" {
		t.Error(got)
	}
	if got := k.ListGVK().Kind; got != "WidgetList" {
		t.Error(got)
	}
	if got := k.Names().Singular; got != "widget" {
		t.Error(got)
	}
	if !k.Namespaced() || !slices.Equal(k.Categories(), []string{"all"}) {
		t.Error(k.Namespaced(), k.Categories())
	}
}

func TestOpenAPIDescribesPathsAndSchema(t *testing.T) {
	k := newKind(t, definition(t, newGroup()))
	var paths []string
	for path := range k.OpenAPIV3().Paths.Paths {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	item := "/apis/" + k.GVK().Group + "/v1/namespaces/{namespace}/widgets/{name}"
	if !slices.Contains(paths, item) || !slices.Contains(paths, item+"/status") {
		t.Errorf("paths %v", paths)
	}
	found := false
	for name, schema := range k.OpenAPIV3().Components.Schemas {
		if strings.HasSuffix(name, ".v1.Widget") {
			found = true
			if _, ok := schema.Properties["spec"].Properties["ports"]; !ok {
				t.Errorf("the schema lacks spec.ports: %v", schema.Properties["spec"])
			}
		}
	}
	if !found {
		t.Error("no schema of the kind")
	}
}

func TestEqualSchemaSeesChangesOnly(t *testing.T) {
	group := newGroup()
	k := newKind(t, definition(t, group))
	if !k.EqualSchema(newKind(t, definition(t, group))) {
		t.Error("the same definition differs from itself")
	}
	for name, edit := range map[string]edit{
		"description": func(crd *apiextensionsv1.CustomResourceDefinition) { root(crd).Description = "new" },
		"short names": func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = []string{"wx"} },
		"a column": func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].AdditionalPrinterColumns = nil
		},
	} {
		if k.EqualSchema(newKind(t, definition(t, group, edit))) {
			t.Errorf("a change of %s isn't seen", name)
		}
	}
	if k.EqualSchema(nil) {
		t.Error("equals nothing")
	}
}
