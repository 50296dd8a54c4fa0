package engine

import (
	"fmt"
	"strings"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Waiting says that a value is not there yet. It is no failure: somebody is expected to provide it.
type Waiting struct {
	// Node is the resource that lacks the value: the reason, not the one that waits.
	Node v1alpha1.NodeID
	// Path is the field that is missing, such as status.endpoint. Empty if it is not a field: then
	// the node does not exist yet, or its readyWhen does not hold.
	Path string
	// Expression is what could not be evaluated, or the readyWhen that does not hold.
	Expression string
	// ReadyWhen says that Expression is a readyWhen of Node's own.
	ReadyWhen bool
	// Element is the object of a list that the readyWhen is about, as an index: [3]. Path has it too.
	Element string
	// Missing is the object, with its plane, that an external node reads and that does not exist:
	// "consumer VPC team-a/main". Empty if that isn't what is awaited.
	Missing string
	// Schemaless is set where Path lies under a field without a schema, so that it may be a typo.
	Schemaless bool
}

// String is what status shows as waitingFor: "server.status.endpoint", "server (readyWhen …)", "server".
func (w *Waiting) String() string {
	switch {
	case w.Path != "" && w.Schemaless:
		return w.field() + " (no schema: check the spelling)"
	case w.Path != "":
		return w.field()
	case w.Missing != "":
		return fmt.Sprintf("%s (%s does not exist)", w.Node, w.Missing)
	case w.Expression != "":
		return fmt.Sprintf("%s%s (%s)", w.Node, w.Element, w.Expression)
	default:
		return string(w.Node)
	}
}

// field is Path as an expression would say it: server.status.endpoint, servers[1].status.endpoint.
func (w *Waiting) field() string {
	if strings.HasPrefix(w.Path, "[") {
		return string(w.Node) + w.Path
	}
	return string(w.Node) + "." + w.Path
}

// Error implements error.
func (w *Waiting) Error() string { return "waiting for " + w.String() }

// ExpressionError says that an expression or a template fails on this input.
type ExpressionError struct {
	// Node whose template, includeWhen, forEach or readyWhen failed; empty for the instance's status.
	Node v1alpha1.NodeID
	// Expression as the author wrote it, without ${}; empty if the failure isn't one of an expression.
	Expression string
	// Fields of the instance that the expression reads, such as spec.size; sorted.
	Fields []string
	// Message is what went wrong, in CEL's or kro's words.
	Message string
	// Cause is what Message was made of; nil if nothing but words is known.
	Cause error
}

// Unwrap gives the cause.
func (e *ExpressionError) Unwrap() error { return e.Cause }

// Error names node, expression, reason and the fields that were read.
func (e *ExpressionError) Error() string {
	var b strings.Builder
	if e.Node != "" {
		fmt.Fprintf(&b, "resource %q: ", e.Node)
	}
	if e.Expression != "" {
		fmt.Fprintf(&b, "expression %q: ", e.Expression)
	}
	b.WriteString(e.Message)
	if len(e.Fields) > 0 {
		fmt.Fprintf(&b, " (reads %s)", strings.Join(e.Fields, ", "))
	}
	return b.String()
}
