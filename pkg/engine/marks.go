package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// OwnedBy says whether the object carries the marks of this instance. Marks are the pair of
// instance UID and consumer cluster; one alone means nothing, since UIDs are unique only per cluster.
func OwnedBy(object *unstructured.Unstructured, instanceUID types.UID, consumer logicalcluster.Name) bool {
	labels := object.GetLabels()
	return instanceUID != "" &&
		labels[v1alpha1.LabelInstanceUID] == string(instanceUID) &&
		labels[v1alpha1.LabelConsumerCluster] == consumer.String()
}

// Marked says whether the object carries an owner's mark, of whichever instance. Objects without
// one may be adopted.
func Marked(object *unstructured.Unstructured) bool {
	labels := object.GetLabels()
	_, uid := labels[v1alpha1.LabelInstanceUID]
	_, consumer := labels[v1alpha1.LabelConsumerCluster]
	return uid || consumer
}

// MarkedByOther says whether the object carries a mark that isn't this instance's. A mark that somebody
// has only taken off makes it nobody else's.
func MarkedByOther(object *unstructured.Unstructured, instanceUID types.UID, consumer logicalcluster.Name) bool {
	labels := object.GetLabels()
	uid, hasUID := labels[v1alpha1.LabelInstanceUID]
	cluster, hasCluster := labels[v1alpha1.LabelConsumerCluster]
	return hasUID && uid != string(instanceUID) || hasCluster && cluster != consumer.String()
}

// Recorded says whether the object is the very one that the row speaks of, and not another of the
// same name. A row that has no UID yet was never written, so nothing is known to differ.
func Recorded(row v1alpha1.ComposedResource, object *unstructured.Unstructured) bool {
	return row.UID == "" || row.UID == object.GetUID()
}

// Unmarked is a copy of the object without krop's marks and without the instance as owner: what is
// left behind by deletionPolicy Orphan.
func Unmarked(object *unstructured.Unstructured, instanceUID types.UID) *unstructured.Unstructured {
	out := object.DeepCopy()
	out.SetLabels(withoutPrefix(out.GetLabels()))
	out.SetAnnotations(withoutPrefix(out.GetAnnotations()))
	owners := out.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool { return owner.UID == instanceUID })
	if len(kept) != len(owners) {
		out.SetOwnerReferences(kept)
	}
	return out
}

func withoutPrefix(in map[string]string) map[string]string {
	out := maps.Clone(in)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.Prefix) })
	return out
}

// mark makes a rendered object the instance's: labels, owner, and last the hash over all of it.
func (n naming) mark(node *Node, object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if labels == nil {
		labels = make(map[string]string, 6)
	}
	labels[v1alpha1.LabelInstanceUID] = string(n.instance.GetUID())
	labels[v1alpha1.LabelConsumerCluster] = n.consumer.String()
	labels[v1alpha1.LabelProviderCluster] = n.program.Export.Cluster.String()
	labels[v1alpha1.LabelBlueprint] = BlueprintLabel(n.program.Blueprint)
	labels[v1alpha1.LabelNode] = string(node.ID)
	if node.Target == v1alpha1.TargetHost && n.program.Installation != "" {
		labels[v1alpha1.LabelInstallation] = n.program.Installation
	}
	object.SetLabels(labels)
	if n.owns(node, object) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), n.owner()))
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	if depth := childDepth(n.instance); depth != "" {
		annotations[v1alpha1.AnnotationDepth] = depth
		object.SetAnnotations(annotations) // part of what the hash is over
	}
	delete(annotations, v1alpha1.AnnotationDesiredHash)
	annotations[v1alpha1.AnnotationDesiredHash] = DesiredHash(object)
	object.SetAnnotations(annotations)
}

// owns says whether Kubernetes lets the instance be the object's owner: in the same workspace, and
// in the same namespace unless the instance has none. Elsewhere the garbage collector would take the
// owner for gone and delete the child. It would also delete, once the consumer has unbound the
// instance's kind, a child that is to outlive its instance: such a child has no owner.
func (n naming) owns(node *Node, object *unstructured.Unstructured) bool {
	if node.Target != v1alpha1.TargetConsumer || node.DeletionPolicy == v1alpha1.DeletionOrphan || n.instance.GetUID() == "" {
		return false
	}
	namespace := n.instance.GetNamespace()
	return namespace == "" || namespace == object.GetNamespace()
}

func (n naming) owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: n.instance.GetAPIVersion(),
		Kind:       n.instance.GetKind(),
		Name:       n.instance.GetName(),
		UID:        n.instance.GetUID(),
	}
}

// stamped is the instance as CEL sees it: a copy, shallow where nothing changes, that says which
// logical cluster it is from.
func stamped(instance *unstructured.Unstructured, consumer logicalcluster.Name) *unstructured.Unstructured {
	object := maps.Clone(instance.Object)
	if object == nil {
		object = map[string]any{}
	}
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[v1alpha1.AnnotationConsumerCluster] = consumer.String()
	metadata["annotations"] = annotations
	object["metadata"] = metadata
	return &unstructured.Unstructured{Object: object}
}
