package publish

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// sliceWrite is what an endpoint slice should say.
type sliceWrite struct {
	url  string
	mode mode
}

// ensureSlice tells kcp where krop serves the export. The slice reaches the shards through a
// CachedResource of the provider's manifest, so that is checked too: without it nothing would be routed,
// and nothing would say why.
func ensureSlice(ctx context.Context, w *workspace, o offer, write sliceWrite) (bool, error) {
	_, err := w.kcp.CacheV1alpha1().CachedResources().Get(ctx, cachedResourceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		missing := fmt.Sprintf("it has no CachedResource %s", cachedResourceName)
		return false, &UnpreparedError{Cluster: w.cluster, Missing: missing, Resource: cachedResources, Cause: err}
	}
	if err != nil {
		return false, explained(err, w.cluster, "get", cachedResources)
	}
	slice, created, err := getOrCreateSlice(ctx, w, o, write.mode)
	if err != nil {
		return false, explained(err, w.cluster, "get and create", endpointSlices.GroupResource())
	}
	if sliceURL(slice) == write.url || created && write.mode != nil { // what a dry-run creates can't be patched
		return created, nil
	}
	return true, explained(patchSlice(ctx, w, o.export.Name, write), w.cluster, "patch the status of", endpointSlices.GroupResource())
}

func getOrCreateSlice(ctx context.Context, w *workspace, o offer, m mode) (*unstructured.Unstructured, bool, error) {
	slices := w.dynamic.Resource(endpointSlices)
	slice, err := slices.Get(ctx, o.export.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || isUnknownResource(err) {
		return slice, false, err
	}
	wanted := &unstructured.Unstructured{}
	wanted.SetGroupVersionKind(endpointSliceKind)
	wanted.SetName(o.export.Name)
	wanted.SetLabels(map[string]string{v1alpha1.LabelBlueprint: o.owner})
	slice, err = slices.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager, DryRun: m})
	if apierrors.IsAlreadyExists(err) {
		slice, err = slices.Get(ctx, o.export.Name, metav1.GetOptions{})
	}
	return slice, true, err
}

// sliceURL is the slice's one address, or empty if it has none, or several.
func sliceURL(slice *unstructured.Unstructured) string {
	endpoints, _, _ := unstructured.NestedSlice(slice.Object, "status", "endpoints")
	if len(endpoints) != 1 {
		return ""
	}
	endpoint, _ := endpoints[0].(map[string]any)
	url, _ := endpoint["url"].(string)
	return url
}

// patchSlice replaces all addresses: a shard refuses to choose between two that carry its prefix.
func patchSlice(ctx context.Context, w *workspace, name string, write sliceWrite) error {
	endpoints := map[string]any{"status": map[string]any{"endpoints": []any{map[string]any{"url": write.url}}}}
	patch, err := json.Marshal(endpoints)
	if err != nil {
		return fmt.Errorf("endpoint slice %s: %w", name, err)
	}
	_, err = w.dynamic.Resource(endpointSlices).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: write.mode}, "status")
	return err
}
