package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// State is what is known of one child of an instance.
//
// +kubebuilder:validation:Enum=Pending;Applied;Ready;Ignored;Unverified;Failed;Deleting
type State string

const (
	// StatePending children wait for something; waitingFor says what.
	StatePending State = "Pending"
	// StateApplied children exist as wanted, and are not ready yet.
	StateApplied State = "Applied"
	// StateReady children exist as wanted and satisfy every readyWhen.
	StateReady State = "Ready"
	// StateIgnored nodes are excluded by includeWhen, their own or that of a node they depend on.
	StateIgnored State = "Ignored"
	// StateUnverified children could not be dry-run before the instance was stored.
	StateUnverified State = "Unverified"
	// StateFailed children could not be computed or written; message says why. krop retries.
	StateFailed State = "Failed"
	// StateDeleting children are being deleted.
	StateDeleting State = "Deleting"
)

// Summary is kro's one-word summary of an instance, in status.state.
type Summary string

const (
	// SummaryInProgress instances wait for children.
	SummaryInProgress Summary = "IN_PROGRESS"
	// SummaryActive instances have all children ready.
	SummaryActive Summary = "ACTIVE"
	// SummaryDeleting instances are being torn down.
	SummaryDeleting Summary = "DELETING"
	// SummaryError instances have a child that failed.
	SummaryError Summary = "ERROR"
)

// Composition is status.composition of every instance: what it is made of. Its resources are also
// the inventory: a child is listed here, by identity, before it is written anywhere, and stays
// listed until it is known to be gone.
type Composition struct {
	// revision is the hash of the blueprint's spec that the children were last planned with.
	Revision string `json:"revision,omitempty"`

	// observedGeneration is the instance's generation that the children were last planned for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// resources has a row per child, and one for each node that has none yet.
	//
	// +listType=atomic
	Resources []ComposedResource `json:"resources,omitempty"`
}

// ComposedResource is one row of the inventory. Together with the target, its resource, namespace
// and name suffice to find and delete the child without the blueprint and without discovery.
type ComposedResource struct {
	// id of the node in the blueprint.
	ID string `json:"id"`
	// target is the plane the child lives on.
	Target Target `json:"target"`
	// apiVersion of the child.
	APIVersion string `json:"apiVersion"`
	// kind of the child.
	Kind string `json:"kind"`
	// resource is the child's plural resource name.
	Resource string `json:"resource,omitempty"`
	// namespace of the child; empty for cluster-scoped ones, and while it isn't known.
	Namespace string `json:"namespace,omitempty"`
	// name of the child; empty while it isn't known.
	Name string `json:"name,omitempty"`
	// uid of the child; empty until it has been written once.
	UID types.UID `json:"uid,omitempty"`
	// state of the child.
	State State `json:"state"`
	// waitingFor names node and path that a pending child waits for.
	WaitingFor string `json:"waitingFor,omitempty"`
	// message explains state.
	Message string `json:"message,omitempty"`
	// deletionPolicy as it was when the child was last applied; empty means Delete.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// wave is the dependency level at which the child was written; teardown goes from the highest to 0.
	Wave int32 `json:"wave,omitempty"`
}
