package engine

import (
	"testing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// TestEachLayerIsMarkedOneDeeper makes each child the instance of the next layer, as nested instances are.
func TestEachLayerIsMarkedOneDeeper(t *testing.T) {
	instance, hashes := labelled(nil), map[string]bool{}
	for layer, want := range []string{"", "2", "3"} {
		child := labelled(nil)
		naming{program: &Program{Blueprint: "b"}, consumer: "c", instance: instance}.mark(&Node{ID: "n"}, child)
		if got := child.GetAnnotations()[v1alpha1.AnnotationDepth]; got != want || Depth(child) != layer+1 {
			t.Errorf("layer %d: annotation %q, depth %d; want %q, %d", layer, got, Depth(child), want, layer+1)
		}
		hashes[child.GetAnnotations()[v1alpha1.AnnotationDesiredHash]] = true
		instance = child
	}
	if len(hashes) != 3 {
		t.Error("the hash of what is wanted is not over the depth: it would not be repaired")
	}
}
