package kro

import (
	"context"
	"regexp"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// finishedCRD is kro's description of the kind with krop's status fields. It is validated here, since
// whoever is to serve it would refuse it later: kro escapes neither defaults nor enums.
func (c *compilation) finishedCRD(from *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd, err := repaired(from)
	if err != nil {
		c.refuse(field.Invalid(field.NewPath("spec", "schema"), field.OmitValueType{}, err.Error()))
		return nil
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	status := root.Properties["status"]
	status.Type = "object"
	status.Properties["state"] = describedString("One word for how the instance is: IN_PROGRESS, ACTIVE, DELETING or ERROR.")
	status.Properties["conditions"] = conditionsSchema()
	status.Properties["composition"] = compositionSchema()
	root.Properties["status"] = status
	root.Description = crd.Spec.Names.Kind + " is composed by krop from the blueprint " + c.name + "."
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	c.validateCRD(crd)
	return crd
}

func (c *compilation) validateCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), internal, nil); err != nil {
		c.refuse(field.Invalid(field.NewPath("spec", "schema"), field.OmitValueType{}, err.Error()))
		return
	}
	internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
		err.Field = schemaField(err.Field)
		c.refuse(err)
	}
}

var property = regexp.MustCompile(`\.properties\[([^]]*)\]`)

// schemaField is the field of the blueprint that a field of the CRD comes from.
func schemaField(crdField string) string {
	// Validation moves the schema of a single version up.
	for _, root := range []string{"spec.versions[0].schema.openAPIV3Schema", "spec.validation.openAPIV3Schema"} {
		if below, found := strings.CutPrefix(crdField, root); found {
			return "spec.schema" + property.ReplaceAllString(below, ".$1")
		}
	}
	switch {
	case strings.HasPrefix(crdField, "spec.names.shortNames"), strings.HasPrefix(crdField, "spec.names.categories"):
		return "spec.schema." + strings.TrimPrefix(crdField, "spec.names.")
	case strings.HasPrefix(crdField, "spec.names"), crdField == "metadata.name":
		return "spec.schema.kind"
	case strings.HasPrefix(crdField, "spec.versions[0]."):
		return "spec.schema." + strings.TrimPrefix(crdField, "spec.versions[0].")
	case strings.HasPrefix(crdField, "metadata."):
		return "spec.schema." + crdField
	default:
		return "spec.schema." + strings.TrimPrefix(crdField, "spec.")
	}
}

func describedString(description string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "string", Description: description}
}

func describedInteger(description string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64", Description: description}
}

func enumerated[T ~string](description string, values ...T) apiextensionsv1.JSONSchemaProps {
	out := describedString(description)
	for _, value := range values {
		out.Enum = append(out.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + string(value) + `"`)})
	}
	return out
}

func listOf(item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
}

func conditionsSchema() apiextensionsv1.JSONSchemaProps {
	time := describedString("When status last changed.")
	time.Format = "date-time"
	list := listOf(apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"type", "status"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"type":               describedString("What the condition is about."),
			"status":             enumerated("Whether it holds.", "True", "False", "Unknown"),
			"reason":             describedString("Why, in one word."),
			"message":            describedString("Why, in a sentence."),
			"lastTransitionTime": time,
			"observedGeneration": describedInteger("The generation of the instance that the condition speaks of."),
		},
	})
	list.Description = "Ready, Progressing and Synced are krop's; any others are the blueprint's."
	list.XListType = ptr.To("map")
	list.XListMapKeys = []string{"type"}
	return list
}

// compositionSchema describes v1alpha1.Composition. TestCompositionSchemaHasAllFields compares them.
func compositionSchema() apiextensionsv1.JSONSchemaProps {
	resources := listOf(apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"id", "target", "apiVersion", "kind", "state"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"id":         describedString("The resource's id in the blueprint."),
			"target":     enumerated("The plane that the child is on.", v1alpha1.TargetConsumer, v1alpha1.TargetProvider, v1alpha1.TargetHost),
			"apiVersion": describedString("The child's apiVersion."),
			"kind":       describedString("The child's kind."),
			"resource":   describedString("The child's plural resource name."),
			"namespace":  describedString("The child's namespace."),
			"name":       describedString("The child's name; absent while it isn't known."),
			"uid":        describedString("The child's uid; absent until it has been written."),
			"state": enumerated("How the child is.", v1alpha1.StatePending, v1alpha1.StateApplied, v1alpha1.StateReady, v1alpha1.StateIgnored,
				v1alpha1.StateUnverified, v1alpha1.StateFailed, v1alpha1.StateDeleting),
			"waitingFor":     describedString("The resource and field that a pending child waits for."),
			"message":        describedString("Why the child is in this state."),
			"deletionPolicy": enumerated("What happens to the child when it is no longer wanted.", v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan),
			"wave":           describedLevel("The dependency level of the child; deletion goes from the highest to 0."),
		},
	})
	resources.Description = "One row per child, and one for each resource of the blueprint that has none."
	resources.XListType = ptr.To("atomic")
	return apiextensionsv1.JSONSchemaProps{
		Type:        "object",
		Description: "What the instance is made of.",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"revision":           describedString("The hash of the blueprint's spec that the children were last planned with."),
			"observedGeneration": describedInteger("The generation of the instance that the children were last planned for."),
			"resources":          resources,
		},
	}
}

func describedLevel(description string) apiextensionsv1.JSONSchemaProps {
	out := describedInteger(description)
	out.Format = "int32"
	return out
}
