package compose

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Apply brings the children of a stored instance to what it wants, wave by wave, and records its
// status. What goes wrong with a child is in the result. An error means that status could not be
// recorded; if it is a Conflict or NotFound, somebody else has written or deleted the instance since, and
// what is to be done follows from that.
//
// An instance that is being deleted is left alone.
func (c *Composer) Apply(ctx context.Context, request Request, intent Intent) (*Result, error) {
	w, err := c.begin(request)
	if err != nil {
		return nil, err
	}
	w.observe(ctx)
	plan := w.plan(ctx)
	stored := request.Instance
	if stored.GetDeletionTimestamp() != nil {
		return &Result{Instance: stored.DeepCopy(), Plan: plan}, nil
	}
	items := w.frontier(plan)
	for len(items) > 0 {
		w.prepareAdoption(items)
		if stored, err = w.recordIdentities(ctx, plan, stored, intent); err != nil {
			return nil, err
		}
		for _, written := range each(ctx, items, w.write) {
			w.noteWritten(written)
		}
		plan = w.plan(ctx)
		items = w.frontier(plan)
	}
	return w.concluded(ctx, plan, stored, intent)
}

// prepareAdoption makes room for the UIDs of objects that are about to be taken over.
func (w *work) prepareAdoption(items []item) {
	for _, i := range items {
		if other := w.foreign[i.child.Key]; other != nil && adoptable(i.node, other) {
			w.forget(i.child.Key)
		}
	}
}

// recordIdentities stores the identity of every child that the plan wants before any of them is
// written: whatever happens from then on, the loop can find what was written.
func (w *work) recordIdentities(ctx context.Context, plan *engine.Plan, stored *unstructured.Unstructured, intent Intent) (*unstructured.Unstructured, error) {
	rows := engine.Rows(plan, w.rows)
	if !w.unstored && !w.hasNew(rows) {
		return stored, nil
	}
	intended := stored.DeepCopy()
	if err := w.composer.setStatus(intended, w.intended(plan, rows)); err != nil {
		return nil, err
	}
	recorded, err := intent.Record(ctx, intended)
	if err != nil {
		return nil, fmt.Errorf("recording which children are to be written: %w", err)
	}
	w.take(rows)
	return recorded, nil
}

// hasNew says whether there is a child that the inventory doesn't list.
func (w *work) hasNew(rows []v1alpha1.ComposedResource) bool {
	for i := range rows {
		if rows[i].Name == "" {
			continue
		}
		if _, known := w.row(rows[i].Key()); !known {
			return true
		}
	}
	return false
}

// written is what the write of one child came to.
type written struct {
	item
	answer *unstructured.Unstructured
	found  *reading
	err    error
}

func (w *work) write(ctx context.Context, i item) written {
	answer, found, err := w.put(ctx, i, false)
	return written{item: i, answer: answer, found: found, err: err}
}

func (w *work) noteWritten(done written) {
	key := done.child.Key
	w.attempts[key]++
	switch {
	case done.err == nil && done.answer != nil:
		w.settled[key] = done.hash()
		w.observed[key] = done.answer
		delete(w.foreign, key)
		w.remember(key, done.answer)
		w.reread(key)
	case done.found != nil && w.attempts[key] < maxAttempts:
		w.note(*done.found)
	default:
		w.failed[key] = done.err
	}
}

// remember puts the UID of a child that was just written into its row.
func (w *work) remember(key v1alpha1.ObjectKey, object *unstructured.Unstructured) {
	if row, ok := w.row(key); ok {
		row.UID = object.GetUID()
	}
}

// concluded records what has become of the instance.
func (w *work) concluded(ctx context.Context, plan *engine.Plan, stored *unstructured.Unstructured, intent Intent) (*Result, error) {
	result := &Result{Plan: plan}
	result.Warnings, result.Err = w.failures(ctx, plan)
	concluded := stored.DeepCopy()
	if err := w.composer.setStatus(concluded, w.status(plan, w.describeRows(plan))); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(concluded.Object["status"], stored.Object["status"]) {
		result.Instance = concluded // what is stored says so already: that need not be read again
		return result, nil
	}
	recorded, err := record(ctx, intent, concluded)
	if err != nil {
		return nil, err
	}
	result.Instance = recorded
	return result, nil
}

// record stores status even if the call's time is up: otherwise what is slow would never be told.
func record(ctx context.Context, intent Intent, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	recorded, err := intent.Record(ctx, instance)
	if err != nil {
		return nil, fmt.Errorf("recording status: %w", err)
	}
	return recorded, nil
}

// failures is what went wrong, and the first of it that is worth a retry. A child that could not be read or
// written is: others may change what is in the way. An expression that fails isn't, before something it reads has changed.
func (w *work) failures(ctx context.Context, plan *engine.Plan) (warnings []string, first error) {
	for i := range plan.Nodes {
		if node := &plan.Nodes[i]; node.Err != nil && !w.waits(node) {
			warnings = append(warnings, node.Err.Error())
			if first == nil && budget.IsBusy(node.Err) {
				first = node.Err
			}
		}
	}
	for _, f := range w.failedChildren(plan) {
		failure := newChildError(w.request, f)
		failure.log(ctx, w.request.Instance)
		warnings = append(warnings, failure.Error())
		if first == nil {
			first = failure
		}
	}
	return warnings, first
}
