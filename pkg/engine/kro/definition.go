package kro

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/graph/crd"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// checkDefinition looks for what an API server would refuse in the definition of a kind that doesn't
// compile, as far as the definition can be made.
func (c *compilation) checkDefinition(spec apiextensionsv1.JSONSchemaProps) {
	s := c.spec.Schema
	status := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: make(map[string]apiextensionsv1.JSONSchemaProps)}
	for _, name := range slices.Sorted(maps.Keys(decoded(s.Status))) {
		status.Properties[name] = anything()
	}
	scope := apiextensionsv1.NamespaceScoped
	if s.Scope == v1alpha1.ScopeCluster {
		scope = apiextensionsv1.ClusterScoped
	}
	c.finishedCRD(crd.SynthesizeCRD(s.Group, s.APIVersion, s.Kind, spec, status, true, scope, c.blueprint().Spec.Schema))
}

// anything is the schema of what isn't known.
func anything() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
}

// maxRounds bounds how often a definition is validated: each kind of errors hides the next, and there
// are fewer kinds than this.
const maxRounds = 6

// validateCRD reports all that an API server would refuse. Since structure hides defaults and these
// hide rules, what was found is taken out, and what is left is validated again.
func (c *compilation) validateCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		c.refuse(field.Invalid(field.NewPath("spec", "schema"), field.OmitValueType{}, err.Error()))
		return
	}
	internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	for round := range maxRounds {
		again := false
		errs := validation.ValidateCustomResourceDefinition(context.Background(), internal)
		if round == 0 && len(errs) > 0 {
			internal = internal.DeepCopy() // it shares parts with crd
		}
		for _, err := range errs {
			rule, removed := withoutError(rootSchema(internal), belowRoot(err.Field))
			again = again || removed
			c.refuseDefinition(err, rule)
		}
		if !again {
			return
		}
	}
}

// rootSchema is where conversion leaves the schema of a single version.
func rootSchema(crd *apiextensions.CustomResourceDefinition) *apiextensions.JSONSchemaProps {
	if crd.Spec.Validation != nil {
		return crd.Spec.Validation.OpenAPIV3Schema
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// belowRoot is the part of a CRD's field that lies in the schema, empty if none does.
func belowRoot(crdField string) string {
	for _, root := range []string{"spec.versions[0].schema.openAPIV3Schema", "spec.validation.openAPIV3Schema"} {
		if below, found := strings.CutPrefix(crdField, root); found {
			return below
		}
	}
	return ""
}

// property is a step in the path of a schema.
var property = regexp.MustCompile(`^\.properties\[([^]]*)\]`)

// withoutError takes out of a schema what an error at the path is about. rule is set if that is a rule.
func withoutError(schema *apiextensions.JSONSchemaProps, path string) (rule string, removed bool) {
	if match := property.FindStringSubmatch(path); match != nil {
		below, found := schema.Properties[match[1]]
		if !found {
			return "", false
		}
		rule, removed = withoutError(&below, path[len(match[0]):])
		schema.Properties[match[1]] = below
		return rule, removed
	}
	if below, found := strings.CutPrefix(path, ".items"); found && schema.Items != nil && schema.Items.Schema != nil {
		return withoutError(schema.Items.Schema, below)
	}
	if below, found := strings.CutPrefix(path, ".additionalProperties"); found && schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		return withoutError(schema.AdditionalProperties.Schema, below)
	}
	return takeOut(schema, path)
}

func takeOut(schema *apiextensions.JSONSchemaProps, what string) (rule string, removed bool) {
	const always = "true"
	var index int
	switch {
	case schema.Properties["apiVersion"].Type != "" && schema.Properties["spec"].Type != "":
		return "", false // the root itself
	case strings.HasPrefix(what, ".default"):
		removed = schema.Default != nil
		schema.Default = nil
		return "", removed
	case scanned(what, ".x-kubernetes-validations[%d]", &index) && index < len(schema.XValidations):
		// The others keep their places.
		rule = schema.XValidations[index].Rule
		schema.XValidations[index] = apiextensions.ValidationRule{Rule: always}
		return rule, rule != always
	case schema.XPreserveUnknownFields != nil:
		return "", false
	default:
		*schema = apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
		return "", true
	}
}

func scanned(text, format string, into *int) bool {
	n, err := fmt.Sscanf(text, format, into)
	return n == 1 && (err == nil || strings.HasPrefix(err.Error(), "input does not match"))
}

// refuseDefinition reports an error of the definition where the blueprint has what it is about.
func (c *compilation) refuseDefinition(err *field.Error, rule string) {
	path := c.fields.source(err.Field)
	if c.isHeader(path) && slices.ContainsFunc(c.errs, func(known *field.Error) bool { return known.Field == path }) {
		return
	}
	told := &field.Error{Type: err.Type, Field: path, BadValue: shownValue(err.BadValue), Detail: inWords(err.Detail)}
	if told.Type == field.ErrorTypeInternal {
		told.Type, told.BadValue = field.ErrorTypeInvalid, field.OmitValueType{}
	}
	if rule != "" {
		told.Field, _, _ = strings.Cut(told.Field, ".x-kubernetes-validations")
		told.Type, told.BadValue, told.Detail = field.ErrorTypeInvalid, rule, "validation: "+told.Detail
	}
	c.refuse(told)
}

// isHeader says whether the field is one that has been looked at before there was a definition.
func (c *compilation) isHeader(path string) bool {
	return slices.Contains([]string{"spec.schema.kind", "spec.schema.group", "spec.schema.apiVersion", "spec.schema.scope"}, path)
}

// shownValue is a bad value as its author knows it.
func shownValue(value any) any {
	switch v := value.(type) {
	case string, bool, int64, float64, field.OmitValueType:
		return v
	case map[string]any, []any:
		if raw, err := json.Marshal(v); err == nil {
			return string(raw)
		}
	}
	return field.OmitValueType{}
}

var (
	// inBody is how OpenAPI's validation starts, with a name that is empty.
	inBody = regexp.MustCompile(`^\S*\s*in body `)
	// compilerError is how CEL starts. The lines that follow show the expression again.
	compilerError = regexp.MustCompile(`^(?s)compilation failed: ERROR: <input>:\d+:(\d+): ([^\n]*)\n.*$`)
)

func inWords(detail string) string {
	detail = inBody.ReplaceAllString(detail, "")
	if match := compilerError.FindStringSubmatch(detail); match != nil {
		detail = fmt.Sprintf("%s (at character %s)", celWords(match[2]), match[1])
	}
	return strings.ReplaceAll(detail, " (in container '')", "")
}
