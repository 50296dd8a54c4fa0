package compose

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// lookup is what one external node reads, and what came of it.
type lookup struct {
	node      *engine.NodePlan
	reference engine.Reference
	objects   []*unstructured.Unstructured
	err       error
}

func (l lookup) finding() finding {
	key := l.reference.Object()
	if l.reference.Selector != nil {
		key.Namespace = "" // of a list, not of an object
	}
	return finding{node: l.node, key: key, err: l.err}
}

// plan makes a plan of what is observed. What the instance only refers to is read for it, each once: what was
// read may say what else there is to be read.
func (w *work) plan(ctx context.Context) *engine.Plan {
	for {
		plan := w.request.Program.Plan(w.request.Instance, w.request.Consumer, w.observed, w.references)
		unread := w.unread(plan)
		if len(unread) == 0 {
			return plan
		}
		w.announce(unread)
		for _, done := range each(ctx, unread, w.look) {
			w.noteLookup(ctx, done)
		}
	}
}

func (w *work) unread(plan *engine.Plan) []lookup {
	var unread []lookup
	seen := map[engine.ReferenceKey]bool{}
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if node.Reference == nil {
			continue
		}
		key := node.Reference.Key()
		if _, read := w.references[key]; !read && !seen[key] {
			seen[key] = true
			unread = append(unread, lookup{node: node, reference: *node.Reference})
		}
	}
	return unread
}

// announce says what is about to be read, so that whoever follows changes misses none.
func (w *work) announce(unread []lookup) {
	if w.request.Reads == nil {
		return
	}
	references := make([]engine.Reference, 0, len(unread))
	for _, next := range unread {
		references = append(references, next.reference)
	}
	w.request.Reads(references)
}

// look reads what is referred to. Whose object it is doesn't matter, since nothing is done to it.
func (w *work) look(ctx context.Context, l lookup) lookup {
	at, err := w.plane(ctx, l.reference.Target)
	if err != nil {
		l.err = err
		return l
	}
	if l.reference.Selector != nil {
		limit := w.request.Program.Limits.Of(budget.SelectedObjects)
		l.objects, l.err = at.List(ctx, l.reference.GVR, l.reference.Namespace, l.reference.Selector, limit)
		return l
	}
	object, err := at.Get(ctx, plane.Object{GVR: l.reference.GVR, Namespace: l.reference.Namespace, Name: l.reference.Name})
	switch {
	case err == nil:
		l.objects = []*unstructured.Unstructured{object}
	case !isAbsent(l.reference.Target, err):
		l.err = err
	}
	return l
}

// isAbsent says whether there is nothing to be read of an object that the instance refers to by name. Nothing
// is ever deleted or forgotten for it, so a kind that is yet to come counts. On a consumer's plane that may
// be a claim that is missing. A list of a kind that isn't served is no empty list: children may go for one.
func isAbsent(target v1alpha1.Target, err error) bool {
	return plane.IsGone(err) || target != v1alpha1.TargetConsumer && plane.IsNotServed(err)
}

func (w *work) noteLookup(ctx context.Context, l lookup) {
	reading := engine.Reading{Objects: l.objects}
	if l.err != nil {
		failure := newChildError(w.request, l.finding())
		failure.log(ctx, w.request.Instance)
		reading.Failure = failure.reason
		w.unreadable[l.reference.Key()] = l.err
	}
	w.references[l.reference.Key()] = reading
}

// reread forgets what was read of an object that was written since: an instance may refer to its own children, and
// would see them only in the next pass. Lists are left to that: with what a list makes of itself, this one might not end.
func (w *work) reread(key v1alpha1.ObjectKey) {
	maps.DeleteFunc(w.references, func(reference engine.ReferenceKey, _ engine.Reading) bool { return reference.ObjectKey == key })
}

// unreadableReferences is what could not be read of what the plan refers to.
func (w *work) unreadableReferences(plan *engine.Plan) []finding {
	var findings []finding
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if node.Reference == nil {
			continue
		}
		if err := w.unreadable[node.Reference.Key()]; err != nil {
			findings = append(findings, lookup{node: node, reference: *node.Reference, err: err}.finding())
		}
	}
	return findings
}
