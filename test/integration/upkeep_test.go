package integration

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// childless is a blueprint whose one child, if it has any, is in the provider's workspace.
func childless(name, kind string, resources ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "krop.opendefense.cloud/v1alpha1", "kind": "ResourceGraphDefinition",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"schema":    map[string]any{"group": "test.example.org", "apiVersion": "v1alpha1", "kind": kind, "spec": map[string]any{"size": "integer"}},
			"resources": resources,
		},
	}}
}

func TestPublishedObjectsThatSomebodyDeletesComeBack(t *testing.T) {
	provider := theOffers(t)
	_, err := provider.Resource(blueprints).Create(t.Context(), childless("keepsakes", "Keepsake"), metav1.CreateOptions{})
	must(t, err)
	slices := schema.GroupVersionResource{Group: "endpoints.krop.opendefense.cloud", Version: "v1alpha1", Resource: "blueprintendpointslices"}
	for _, resource := range []schema.GroupVersionResource{exports, slices} {
		objects := provider.Resource(resource)
		var before types.UID
		eventually(t, resource.Resource+" is published", func() error {
			found, err := objects.Get(t.Context(), "keepsakes.test.example.org", metav1.GetOptions{})
			if err == nil {
				before = found.GetUID()
			}
			return err
		})
		must(t, objects.Delete(t.Context(), "keepsakes.test.example.org", metav1.DeleteOptions{}))
		eventually(t, resource.Resource+" comes back", func() error {
			found, err := objects.Get(t.Context(), "keepsakes.test.example.org", metav1.GetOptions{})
			if err == nil && found.GetUID() == before {
				return fmt.Errorf("it is not even gone")
			}
			return err
		})
	}
	must(t, provider.Resource(blueprints).Delete(t.Context(), "keepsakes", metav1.DeleteOptions{}))
	eventually(t, "the export goes with its blueprint", func() error {
		if _, err := provider.Resource(exports).Get(t.Context(), "keepsakes.test.example.org", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the export: %v", err)
		}
		return nil
	})
}

func TestBlueprintIsRefusedWhereKropMayNotComposeItsKinds(t *testing.T) {
	provider := theOffers(t)
	role := map[string]any{"id": "role", "target": "provider", "template": map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "any"},
	}}
	_, err := provider.Resource(blueprints).Create(t.Context(), childless("grabs", "Grab", role), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("the answer is %v, want 403", err)
	}
	for _, word := range []string{"clusterroles.rbac.authorization.k8s.io", "create", "ClusterRoleBinding"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the answer lacks %q: %v", word, err)
		}
	}
}
