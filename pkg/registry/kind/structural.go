package kind

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// structural is the kind's schema at work: it does to unstructured objects what decoding into a Go
// type does to others.
type structural struct {
	gvk    schema.GroupVersionKind
	schema *structuralschema.Structural
}

func (k *Kind) buildSchema(internal *apiextensions.CustomResourceDefinition) error {
	root, err := structuralschema.NewStructural(openAPISchema(internal))
	if err != nil {
		return fmt.Errorf("converting the schema: %w", err)
	}
	root = root.DeepCopy() // defaults are shared with the definition, and are pruned next
	if err := defaulting.PruneDefaults(root); err != nil {
		return fmt.Errorf("pruning defaults: %w", err)
	}
	k.schema = &structural{gvk: k.GVK(), schema: root}
	return nil
}

// openAPISchema is the schema of the one version; conversion moves it to the top if all versions agree.
func openAPISchema(internal *apiextensions.CustomResourceDefinition) *apiextensions.JSONSchemaProps {
	if internal.Spec.Validation != nil {
		return internal.Spec.Validation.OpenAPIV3Schema
	}
	return internal.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// Default fills in defaults, of objects of the kind only.
func (s *structural) Default(in runtime.Object) {
	if object, ok := in.(runtime.Unstructured); ok && s.describes(in) {
		defaulting.Default(object.UnstructuredContent(), s.schema)
	}
}

var _ runtime.ObjectDefaulter = &structural{}

func (s *structural) describes(object runtime.Object) bool {
	return object.GetObjectKind().GroupVersionKind().GroupKind() == s.gvk.GroupKind()
}

// coercion is how strictly objects are made to fit. The zero value is for what comes from clients.
type coercion struct {
	// repair drops malformed metadata instead of failing, and makes up for a missing generation: for what
	// is stored already.
	repair bool
	// reportUnknown asks for the paths of what was pruned.
	reportUnknown bool
}

// coerce prunes unknown fields and nulls that aren't allowed, and checks the metadata, at the root and
// of embedded objects. Objects of other kinds (DeleteOptions pass through here too) only have their metadata checked.
func (s *structural) coerce(object *unstructured.Unstructured, how coercion) (unknown []string, err error) {
	kind, apiVersion, err := typeOf(object)
	if err != nil {
		return nil, err
	}
	metadata, hasMetadata, unknown, err := objectmeta.GetObjectMetaWithOptions(object.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields:     how.repair,
		ReturnUnknownFieldPaths: how.reportUnknown,
	})
	if err != nil {
		return nil, err
	}
	if s.describes(object) {
		pruned, err := s.prune(object.Object, how)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, pruned...)
		if how.repair && metadata.Generation == 0 {
			metadata.Generation = 1
		}
	}
	// Pruning knows nothing of these three: put them back.
	restoreType(object, kind, apiVersion)
	if hasMetadata {
		if err := objectmeta.SetObjectMeta(object.Object, metadata); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

func (s *structural) prune(content map[string]any, how coercion) (unknown []string, err error) {
	unknown = pruning.PruneWithOptions(content, s.schema, true, structuralschema.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: how.reportUnknown,
	})
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.schema)

	failure, embedded := objectmeta.CoerceWithOptions(nil, content, s.schema, false, objectmeta.CoerceOptions{
		DropInvalidFields:       how.repair,
		ReturnUnknownFieldPaths: how.reportUnknown,
	})
	if failure != nil {
		return nil, failure
	}
	return append(unknown, embedded...), nil
}

func typeOf(object *unstructured.Unstructured) (kind, apiVersion string, err error) {
	if kind, _, err = unstructured.NestedString(object.Object, "kind"); err != nil {
		return "", "", err
	}
	if apiVersion, _, err = unstructured.NestedString(object.Object, "apiVersion"); err != nil {
		return "", "", err
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return "", "", err
	}
	return kind, apiVersion, nil
}

func restoreType(object *unstructured.Unstructured, kind, apiVersion string) {
	if kind != "" {
		object.SetKind(kind)
	}
	if apiVersion != "" {
		object.SetAPIVersion(apiVersion)
	}
}
