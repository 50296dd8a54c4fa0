package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// Preflight checks an instance that is about to be stored, and writes nothing. Children are dry-run
// level by level, each level in parallel; what a dry-run answers stands for the object when the next
// level is planned. Children that are as wanted already aren't dry-run.
//
// What is wrong comes back as one Status with all that was found. Otherwise the result's instance has
// krop's finalizer, the inventory and status.
func (c *Composer) Preflight(ctx context.Context, request Request) (*Result, error) {
	w, err := c.begin(request)
	if err != nil {
		return nil, err
	}
	w.observe(ctx)
	plan := w.plan(ctx)
	items := w.frontier(plan)
	for len(items) > 0 {
		for _, checked := range each(ctx, items, w.check) {
			w.noteChecked(plan, checked)
		}
		plan = w.plan(ctx)
		items = w.frontier(plan)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err // nobody waits for the answer
	}
	if findings := append(w.findings(plan), w.awaitedDenials(ctx, plan)...); len(findings) > 0 {
		return nil, refuse(request, findings)
	}
	return w.admitted(plan)
}

// checked is what a dry-run came to.
type checked struct {
	item
	answer *unstructured.Unstructured
	// found is set if the child turned out to exist, or to have changed: it has to be checked again.
	found *reading
	err   error
}

// check dry-runs one child.
func (w *work) check(ctx context.Context, i item) checked {
	answer, found, err := w.put(ctx, i, true)
	return checked{item: i, answer: answer, found: found, err: err}
}

func (w *work) noteChecked(plan *engine.Plan, c checked) {
	key := c.child.Key
	w.attempts[key]++
	switch {
	case c.err == nil && c.answer != nil:
		w.settled[key] = c.hash()
		if c.child.Observed == nil { // an object that is to be adopted isn't the instance's yet either
			c.answer = standIn(c.answer)
		}
		w.observed[key] = c.answer
	case c.found != nil && w.attempts[key] < maxAttempts:
		w.note(*c.found)
	case isUnverifiable(plan, c.node, c.err):
		w.settled[key] = c.hash()
		w.unverified[key] = c.err
	default:
		w.failed[key] = c.err
	}
}

// standIn is a dry-run's answer without what only a real write decides.
func standIn(answer *unstructured.Unstructured) *unstructured.Unstructured {
	out := answer.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "selfLink", "managedFields"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	return out
}

// put writes one child, or asks what writing it would do. If the child turns out to exist, or to be
// no longer what was observed, found says what is there now, and err what the write was refused with.
func (w *work) put(ctx context.Context, i item, dryRun bool) (answer *unstructured.Unstructured, found *reading, err error) {
	at, err := w.plane(ctx, i.child.Key.Target)
	if err != nil {
		return nil, nil, err
	}
	options := w.writeOptions()
	options.DryRun = dryRun
	live := i.child.Observed
	if other := w.foreign[i.child.Key]; live == nil && other != nil {
		if !adoptable(i.node, other) {
			return nil, nil, &foreignError{object: other, policy: i.node.ConflictPolicy}
		}
		live = other
	}
	if live == nil {
		answer, err = at.Create(ctx, i.node.GVR, i.child.Object, options)
	} else {
		answer, err = at.Apply(ctx, i.node.GVR, i.child.Object, live, options)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || live != nil && plane.IsGone(err) {
		now := w.get(ctx, reference{key: i.child.Key, gvr: i.node.GVR})
		return nil, &now, err
	}
	return answer, nil, err
}

// findings is everything that speaks against storing the instance.
func (w *work) findings(plan *engine.Plan) []finding {
	var findings []finding
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if node.Err != nil && !w.waits(node) && w.blames(node.Outcome, node.Err) {
			findings = append(findings, finding{node: node, err: node.Err})
		}
	}
	findings = append(findings, w.failedChildren(plan)...)
	if len(w.held) == 0 {
		findings = append(findings, w.statusFindings(plan)...)
	}
	return findings
}

// blames says whether a failed expression is this write's fault. A template always is. A readyWhen or a
// status expression may fail on what a child's controller has written: if it reads nothing of the
// instance, no change to the instance can mend it, and refusing would only keep the user from writing.
func (w *work) blames(outcome engine.Outcome, failure *engine.ExpressionError) bool {
	return outcome == engine.Failed || len(failure.Fields) > 0 || !w.isUpdate()
}

// isUpdate says whether children of the instance have been written before.
func (w *work) isUpdate() bool {
	return slices.ContainsFunc(w.rows, func(row v1alpha1.ComposedResource) bool { return row.UID != "" })
}

func (w *work) statusFindings(plan *engine.Plan) []finding {
	var findings []finding
	for _, failure := range expressionErrors(plan.StatusError) {
		if failure.Node == "" && w.blames(engine.Desired, failure) {
			findings = append(findings, finding{err: failure})
		}
	}
	return findings
}

// admitted is the result of a preflight that found nothing wrong.
func (w *work) admitted(plan *engine.Plan) (*Result, error) {
	instance := w.request.Instance.DeepCopy()
	if !slices.Contains(instance.GetFinalizers(), v1alpha1.Finalizer) {
		instance.SetFinalizers(append(instance.GetFinalizers(), v1alpha1.Finalizer))
	}
	if err := w.composer.setStatus(instance, w.admittedStatus(plan)); err != nil {
		return nil, err
	}
	result := &Result{Instance: instance, Plan: plan}
	for i := range plan.Nodes {
		for _, child := range plan.Nodes[i].Children {
			if err := w.unverified[child.Key]; err != nil {
				result.Warnings = append(result.Warnings, fmt.Sprintf("%s could not be checked before it is applied: %v", describe(&plan.Nodes[i], child.Key), err))
			}
		}
	}
	return result, nil
}

// admittedStatus is the status that the instance would have once all is applied, or what is true of it
// when it is stored: then what expressions make of answers to dry-runs is nobody's business.
func (w *work) admittedStatus(plan *engine.Plan) status {
	rows := w.describeRows(plan)
	if w.request.DryRun {
		return w.status(plan, rows)
	}
	notWrittenYet(rows)
	return w.intended(plan, rows)
}

// notWrittenYet says of children that only a dry-run has seen that they don't exist yet.
func notWrittenYet(rows []v1alpha1.ComposedResource) {
	for i := range rows {
		row := &rows[i]
		if row.Name != "" && row.UID == "" && (row.State == v1alpha1.StateApplied || row.State == v1alpha1.StateReady) {
			row.State, row.WaitingFor, row.Message = v1alpha1.StatePending, "", engine.NotWrittenYet
		}
	}
}
