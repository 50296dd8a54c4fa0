package engine

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// Program is a compiled blueprint. It is immutable and safe for concurrent use; an edit of the
// blueprint makes another one.
type Program struct {
	// Blueprint is the name of the ResourceGraphDefinition.
	Blueprint string
	// Export is the export that the blueprint is published as.
	Export v1alpha1.ExportKey
	// Installation identifies the krop that composes, among those that share a host.
	Installation string
	// SpecHash identifies the spec that was compiled: 16 lower-case hexadecimal digits.
	SpecHash string
	// CRD is the kind that instances have: one version, with the status subresource, and with krop's
	// own status fields beside the author's. It is never created anywhere; it describes the kind.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Kinds are what it was compiled against. If a plane serves one of them otherwise, compiling again may give
	// another program, or none.
	Kinds UsedKinds
	// Nodes are in topological order: a node comes after all that it depends on.
	Nodes []Node

	// Graph evaluates the blueprint's expressions.
	Graph Graph
	// Limits bound what an instance may be composed of.
	Limits budget.Limits
}

// Node is one resource of a blueprint.
type Node struct {
	ID             v1alpha1.NodeID
	Target         v1alpha1.Target
	GVK            schema.GroupVersionKind
	GVR            schema.GroupVersionResource
	Namespaced     bool
	Collection     bool // has forEach
	External       bool // externalRef: read, never written
	Selects        bool // External by selector: a list in expressions, as Collection is
	DependsOn      []v1alpha1.NodeID
	Level          int32 // 0 for nodes that depend on no other; otherwise one more than the highest of DependsOn
	ConflictPolicy v1alpha1.ConflictPolicy
	DeletionPolicy v1alpha1.DeletionPolicy
	// Origin is the export that the kind is from, where it is written and is bound from one. If krop serves that export,
	// the children are instances themselves.
	Origin v1alpha1.ExportKey
}

// Graph is a blueprint's compiled expressions. Implementations are immutable and safe for concurrent use.
type Graph interface {
	// Start begins one evaluation for an instance that has name, namespace, uid, creationTimestamp
	// and generation. The pass reads the instance and doesn't change it.
	Start(instance *unstructured.Unstructured) (Pass, error)
}

// Pass is one evaluation of a graph. Results are memoised, so a pass sees one state of the world
// only: a changed observation needs a new pass. Nodes must be visited in topological order. Not safe
// for concurrent use.
//
// Errors are *Waiting where a value is not there yet, and *ExpressionError where an expression
// can't succeed on this input.
type Pass interface {
	// Ignored says whether the node is excluded, by its own includeWhen or by that of a node it depends on.
	Ignored(id v1alpha1.NodeID) (bool, error)
	// Desired renders the template of a node that isn't External: one object, or one per forEach combination, in order.
	// The objects belong to the pass until it ends. The caller may rename and mark them in place,
	// and must have done so before Observe.
	Desired(id v1alpha1.NodeID) ([]*unstructured.Unstructured, error)
	// Reference renders what an External node reads, without target and resource.
	Reference(id v1alpha1.NodeID) (*Reference, error)
	// Observe gives those of the node's objects that exist, in the order of Desired; of an External node,
	// what was read.
	Observe(id v1alpha1.NodeID, objects []*unstructured.Unstructured)
	// Ready evaluates readyWhen on what was observed: nil if all hold.
	Ready(id v1alpha1.NodeID) error
	// ReadyElements is what Ready has found of each object of a list, in the order of Observe: nil for those that
	// are ready. It ends where an expression has failed.
	ReadyElements(id v1alpha1.NodeID) []error
	// Status evaluates the author's status. Fields whose values aren't there yet are left out;
	// pending says what they wait for.
	Status() (fields map[string]any, pending []*Waiting, err error)
	// Conditions evaluates the author's conditions, given krop's own. complete is false when some
	// could not be evaluated yet.
	Conditions(own []Condition) (conditions []Condition, complete bool, err error)
}

// Condition is a condition of an instance, without its times.
type Condition struct {
	Type, Status, Reason, Message string
}
