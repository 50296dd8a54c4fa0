package engine

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Depth is how deep an instance is nested: 0 for one that isn't a child of another. Children of such a one say
// nothing of their depth, so that ordinary ones carry no mark that means nothing to them.
func Depth(instance *unstructured.Unstructured) int {
	if !Marked(instance) {
		return 0
	}
	depth, err := strconv.Atoi(instance.GetAnnotations()[v1alpha1.AnnotationDepth])
	if err != nil || depth < 1 {
		return 1
	}
	return depth
}

// childDepth is the value of AnnotationDepth on children of the instance; empty for none.
func childDepth(instance *unstructured.Unstructured) string {
	depth := Depth(instance)
	if depth == 0 {
		return ""
	}
	return strconv.Itoa(depth + 1)
}

// MarkKeys are the labels and annotations that krop puts on children. A child may itself be an instance that
// krop serves. Its parent's write comes to krop by way of kcp, like anybody's, so that whoever may write the
// instance may write these: as with any other child they prove nothing (see OwnedBy).
func MarkKeys() []string {
	return []string{
		v1alpha1.LabelInstanceUID, v1alpha1.LabelConsumerCluster, v1alpha1.LabelProviderCluster, v1alpha1.LabelBlueprint, v1alpha1.LabelNode,
		v1alpha1.AnnotationDesiredHash, v1alpha1.AnnotationDepth,
	}
}
