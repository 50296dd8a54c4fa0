package engine_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

func TestDepthIsThatOfMarksAlone(t *testing.T) {
	for name, test := range map[string]struct {
		marked bool
		depth  string
		want   int
	}{
		"of its own":              {false, "", 0},
		"of its own, and claimed": {false, "5", 0},
		"child of such a one":     {true, "", 1},
		"deeper":                  {true, "3", 3},
		"nonsense":                {true, "x", 1},
		"negative":                {true, "-7", 1},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if test.marked {
				object.SetLabels(map[string]string{v1alpha1.LabelInstanceUID: "1", v1alpha1.LabelConsumerCluster: "c"})
			}
			if test.depth != "" {
				object.SetAnnotations(map[string]string{v1alpha1.AnnotationDepth: test.depth})
			}
			if got := engine.Depth(object); got != test.want {
				t.Errorf("depth %d, want %d", got, test.want)
			}
		})
	}
}
