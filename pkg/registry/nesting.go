package registry

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Height is how many layers of served kinds are below the export's kind: 0 if its instances have no children that
// are instances themselves. So the write of an instance only ever waits for writes of kinds that are lower. No more
// than the bound on nesting; kinds that are composed of each other in a loop have that.
func (c *Catalog) Height(export v1alpha1.ExportKey) int {
	return heights{catalog: c, most: budget.Nesting.Default}.of(export)
}

// heights remembers what it has found, since many blueprints may share what is below them.
type heights struct {
	catalog *Catalog
	most    int
	known   map[v1alpha1.ExportKey]int
}

func (h heights) of(export v1alpha1.ExportKey) int {
	served, ok := h.catalog.Lookup(export)
	if !ok || served.Program == nil {
		return 0
	}
	if height, ok := h.known[export]; ok {
		return height
	}
	height := 0
	for _, node := range served.Program.Nodes {
		if below, ok := h.catalog.Lookup(node.Origin); !ok || below.Program == nil {
			continue
		}
		if h.known == nil {
			h.known = map[v1alpha1.ExportKey]int{}
		}
		h.known[export] = h.most // what comes back here is a loop
		height = max(height, 1+h.of(node.Origin))
	}
	height = min(height, h.most)
	if h.known != nil {
		h.known[export] = height
	}
	return height
}

// CycleError says that a blueprint's instances would be composed of instances of the same blueprint.
type CycleError struct {
	// Node of the first blueprint that leads into the loop.
	Node v1alpha1.NodeID
	// Blueprints in the order in which they compose each other; the first is also the last.
	Blueprints []*engine.Program
}

// Error shows the way round.
func (e *CycleError) Error() string {
	names := make([]string, 0, len(e.Blueprints))
	for _, program := range e.Blueprints {
		names = append(names, fmt.Sprintf("%s (workspace %s)", program.Blueprint, program.Export.Cluster))
	}
	return fmt.Sprintf("resource %q closes a loop of blueprints, whose instances would never be complete: %s. Leave out one of the resources that lead round",
		e.Node, strings.Join(names, " -> "))
}

// Cycle is a *CycleError if the program is composed of its own kind, by way of other served programs or by itself.
// Kinds are followed to the exports that they are from, so that two of the same name are told apart. What is
// served for the program's own export doesn't matter: the program may be about to replace it.
func (c *Catalog) Cycle(program *engine.Program) error {
	search := cycles{catalog: c, from: program, seen: map[v1alpha1.ExportKey]bool{}}
	for _, node := range program.Nodes {
		if way := search.back(node.Origin); way != nil {
			return &CycleError{Node: node.ID, Blueprints: append([]*engine.Program{program}, way...)}
		}
	}
	return nil
}

// cycles looks for a way back to a program.
type cycles struct {
	catalog *Catalog
	from    *engine.Program
	seen    map[v1alpha1.ExportKey]bool
}

// back is the way from an export to the program that it began with; nil if there is none.
func (s cycles) back(export v1alpha1.ExportKey) []*engine.Program {
	switch export {
	case v1alpha1.ExportKey{}: // not of any
		return nil
	case s.from.Export:
		return []*engine.Program{s.from}
	}
	served, ok := s.catalog.Lookup(export)
	if !ok || served.Program == nil || s.seen[export] {
		return nil
	}
	s.seen[export] = true
	for _, node := range served.Program.Nodes {
		if way := s.back(node.Origin); way != nil {
			return append([]*engine.Program{served.Program}, way...)
		}
	}
	return nil
}

// Nesting refuses instances that are nested too deep, or would be without end.
type Nesting struct {
	Catalog *Catalog
	Limits  budget.Limits
}

// Admit refuses an instance that is too deep inside of others. The depth is what its parent has stamped on it. Whoever
// writes instances may write that, too, and so may have the bound apply later; but only the edit of a person or
// a robot does, and each gains no more than the bound.
func (n Nesting) Admit(instance *unstructured.Unstructured) error {
	return Refused(n.Limits.Check(budget.Nesting, engine.Depth(instance)))
}

// AdmitNew also refuses new instances of a program that is part of a loop. Such blueprints are refused themselves, but
// two that are written at one time may both pass. What is stored can be changed, and deleted.
func (n Nesting) AdmitNew(program *engine.Program, instance *unstructured.Unstructured) error {
	if err := n.Admit(instance); err != nil || n.Catalog == nil {
		return err
	}
	cycle := n.Catalog.Cycle(program)
	if cycle == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("%s %q can't be composed: %v", instance.GetKind(), instance.GetName(), cycle),
	}}
}
