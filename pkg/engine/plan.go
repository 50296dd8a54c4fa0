package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Observed is the objects that are known to exist (or, in preflight, that a dry-run answered with).
type Observed map[v1alpha1.ObjectKey]*unstructured.Unstructured

// Outcome is what a plan says of a node.
type Outcome string

const (
	// Desired nodes have objects that should exist.
	Desired Outcome = "Desired"
	// Pending nodes wait for a value.
	Pending Outcome = "Pending"
	// Ignored nodes should have no objects.
	Ignored Outcome = "Ignored"
	// Failed nodes have an expression that fails on this instance.
	Failed Outcome = "Failed"
)

// Plan is what an instance should consist of, given what is observed. It is made anew whenever
// something observed has changed. Not safe for concurrent use.
type Plan struct {
	// Nodes are in the program's order.
	Nodes []NodePlan
	// Status holds the author's status fields that can be evaluated, without conditions.
	Status map[string]any
	// StatusWaiting says what the fields that are left out wait for.
	StatusWaiting []*Waiting
	// StatusError is set when a status expression fails.
	StatusError error

	pass Pass
}

// NodePlan is what a plan says of one node.
type NodePlan struct {
	*Node
	Outcome Outcome
	// Children are the node's objects, if Desired. External nodes have none: what they read is no child.
	Children []Child
	// Reference is what an External node reads, once it could be rendered; set also while its object
	// is missing.
	Reference *Reference
	// Found is what was read for Reference, in the order that expressions see it in.
	Found []*unstructured.Unstructured
	// Unreadable says why Reference could not be read, in words for the instance's user.
	Unreadable string
	// Waiting is set if Pending, and if Desired and observed but not ready.
	Waiting *Waiting
	// Err is set if Failed, and if Desired and a readyWhen fails on what is observed.
	Err *ExpressionError
	// Ready is set when all children are observed and every readyWhen holds.
	Ready bool
}

// Child is one object that should exist.
type Child struct {
	Key v1alpha1.ObjectKey
	// Object is what to apply: named, marked, and carrying AnnotationDesiredHash.
	Object *unstructured.Unstructured
	// Observed is the object as it exists, nil if it isn't known to.
	Observed *unstructured.Unstructured
	// Ready and Waiting are of this object of a list, where the list isn't ready as a whole: whether every
	// readyWhen holds, and if not, what it waits for.
	Ready   bool
	Waiting *Waiting
}
