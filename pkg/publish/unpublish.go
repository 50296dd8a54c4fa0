package publish

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Unpublish withdraws a blueprint's export and deletes what was published with it. The caller has made sure that
// no instance is left: consumers lose access at once. Absent objects are fine, and what belongs to somebody else
// is left alone.
func (p *Publisher) Unpublish(ctx context.Context, export v1alpha1.ExportKey, blueprint string) error {
	w, err := p.kcp.workspace(export.Cluster.Path())
	if err != nil {
		return err
	}
	owner := engine.BlueprintLabel(blueprint)
	if err := deleteExport(ctx, w, export.Name, owner); err != nil {
		return err
	}
	return errors.Join(deleteSlice(ctx, w, export.Name, owner), deleteSchemas(ctx, w, schemasOf{kind: export.Name, owner: owner}))
}

func deleteExport(ctx context.Context, w *workspace, name, owner string) error {
	exports := w.kcp.ApisV1alpha2().APIExports()
	existing, err := exports.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !isUnknownResource(err) {
		return nil
	}
	if err != nil {
		return explained(err, w.cluster, "get", apiExports)
	}
	if existing.Labels[v1alpha1.LabelBlueprint] != owner {
		return nil
	}
	err = exports.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(existing.UID))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return explained(err, w.cluster, "delete", apiExports)
}

func deleteSlice(ctx context.Context, w *workspace, name, owner string) error {
	slices := w.dynamic.Resource(endpointSlices)
	existing, err := slices.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return explained(err, w.cluster, "get", endpointSlices.GroupResource())
	}
	if existing.GetLabels()[v1alpha1.LabelBlueprint] != owner {
		return nil
	}
	err = slices.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(existing.GetUID()))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return explained(err, w.cluster, "delete", endpointSlices.GroupResource())
}
