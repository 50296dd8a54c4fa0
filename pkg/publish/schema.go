package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// ensureSchema creates the offer's APIResourceSchema if it is absent, and returns its name. A schema that
// exists is never changed. If one of the same spec exists with other content (an earlier release of krop
// generated it) the content's hash becomes part of the name.
func ensureSchema(ctx context.Context, w *workspace, o offer, m mode) (string, bool, error) {
	wanted, err := schemaOf(o, "v"+o.specHash)
	if err != nil {
		return "", false, err
	}
	name, created, err := createSchema(ctx, w, wanted, m)
	if err != nil || name != "" {
		return name, created, err
	}
	hash := wanted.Annotations[annotationSchemaHash]
	if wanted, err = schemaOf(o, "v"+o.specHash+"-"+hash[:8]); err != nil {
		return "", false, err
	}
	name, created, err = createSchema(ctx, w, wanted, m)
	if err == nil && name == "" {
		err = apierrors.NewConflict(apiResourceSchemas, wanted.Name, fmt.Errorf("it exists with other content"))
	}
	return name, created, err
}

// createSchema returns no name if a schema of that name exists with other content.
func createSchema(ctx context.Context, w *workspace, wanted *apisv1alpha1.APIResourceSchema, m mode) (string, bool, error) {
	schemas := w.kcp.ApisV1alpha1().APIResourceSchemas()
	existing, err := schemas.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = schemas.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager, DryRun: m})
		if err == nil {
			return wanted.Name, true, nil
		}
		if apierrors.IsAlreadyExists(err) { // another replica was faster
			existing, err = schemas.Get(ctx, wanted.Name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return "", false, explained(err, w.cluster, "get and create", apiResourceSchemas)
	}
	if existing.Annotations[annotationSchemaHash] != wanted.Annotations[annotationSchemaHash] {
		return "", false, nil
	}
	return wanted.Name, false, nil
}

// schemasOf are the schemas that a blueprint (the value of its label) has published of a kind.
type schemasOf struct{ kind, owner string }

// deleteSchemas deletes them, except for those that are kept.
func deleteSchemas(ctx context.Context, w *workspace, of schemasOf, keep ...string) error {
	schemas := w.kcp.ApisV1alpha1().APIResourceSchemas()
	list, err := schemas.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelBlueprint + "=" + of.owner})
	if err != nil {
		return explained(err, w.cluster, "list", apiResourceSchemas)
	}
	for _, schema := range list.Items {
		if schema.Spec.Names.Plural+"."+schema.Spec.Group != of.kind || slices.Contains(keep, schema.Name) {
			continue
		}
		if err := schemas.Delete(ctx, schema.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return explained(err, w.cluster, "delete", apiResourceSchemas)
		}
	}
	return nil
}

func schemaOf(o offer, prefix string) (*apisv1alpha1.APIResourceSchema, error) {
	schema, err := apisv1alpha1.CRDToAPIResourceSchema(o.crd, prefix)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", o.crd.Name, err)
	}
	spec, err := json.Marshal(schema.Spec)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", o.crd.Name, err)
	}
	schema.Labels = merged(o.crd.Labels, v1alpha1.LabelBlueprint, o.owner)
	schema.Annotations = merged(o.crd.Annotations, annotationSchemaHash, digest(spec))
	return schema, nil
}

// merged is a copy of values with one more.
func merged(values map[string]string, key, value string) map[string]string {
	result := make(map[string]string, len(values)+1)
	for k, v := range values {
		result[k] = v
	}
	result[key] = value
	return result
}
