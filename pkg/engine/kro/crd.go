package kro

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// finishedCRD is kro's description of the kind with krop's status fields. It is validated here, since
// whoever is to serve it would refuse it later: kro escapes neither defaults nor enums.
func (c *compilation) finishedCRD(from *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd := repaired(c.withUnusedTypes(from))
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	status := root.Properties["status"]
	status.Type = "object"
	delete(status.Properties, "state")
	delete(status.Properties, "conditions")
	root.Properties["status"] = status
	root.Description = crd.Spec.Names.Kind + " is composed by krop from the blueprint " + c.name + "."
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	if !c.checkRules(root) || !c.checkPatterns(root) {
		return crd
	}
	c.validateCRD(crd)
	// What all kinds have is known to be valid: TestTheDefinitionIsValid.
	status.Properties["state"] = describedString("One word for how the instance is: IN_PROGRESS, ACTIVE, DELETING or ERROR.")
	status.Properties["conditions"] = conditionsSchema()
	status.Properties["composition"] = compositionSchema()
	delete(root.Properties, unusedTypes)
	c.checkColumns(crd)
	return crd
}

// unusedTypes is a property that the definition has only while it is validated: types of the author's
// that no field has.
const unusedTypes = "types"

func (c *compilation) withUnusedTypes(from *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	types := c.fields.unusedTypes()
	if types == nil {
		return from
	}
	out := from.DeepCopy()
	out.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[unusedTypes] = *types
	return out
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
