package publish

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// manifestKinds are the kinds in the manifests that bootstrap applies, and their resources: asking discovery
// for names that are known would be slower and no safer.
var manifestKinds = map[schema.GroupKind]string{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "customresourcedefinitions",
	{Group: "cache.kcp.io", Kind: "CachedResource"}:                   "cachedresources",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         "clusterroles",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  "clusterrolebindings",
	{Group: "apis.kcp.io", Kind: "APIBinding"}:                        "apibindings",
}

// applyObject applies a cluster-scoped object of a manifest and says what that changed.
func applyObject(ctx context.Context, w *workspace, object *unstructured.Unstructured) (string, error) {
	kind := object.GroupVersionKind()
	resource, ok := manifestKinds[kind.GroupKind()]
	if !ok {
		return "", fmt.Errorf("unexpected kind %s", kind)
	}
	objects := w.dynamic.Resource(kind.GroupVersion().WithResource(resource))
	before, err := objects.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	existed := err == nil
	// Forced: the manifests decide about what they name.
	after, err := objects.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	switch {
	case err != nil:
		return "", err
	case !existed:
		return outcomeCreated, nil
	case after.GetGeneration() == before.GetGeneration() && after.GetResourceVersion() == before.GetResourceVersion():
		return outcomeUnchanged, nil
	default:
		return outcomeConfigured, nil
	}
}

func kindName(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	return strings.ToLower(kind.Kind) + "." + kind.Group + "/" + object.GetName()
}
