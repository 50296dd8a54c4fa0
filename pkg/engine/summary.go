package engine

import (
	"fmt"
	"slices"
	"strings"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Health is krop's own view of an instance: the one-word summary and the conditions that are
// reserved to krop, in the order Ready, Progressing, Synced.
type Health struct {
	Summary    v1alpha1.Summary
	Conditions []Condition
}

// Summarize says how an instance is, from its rows as they are after composing, and from what went
// wrong with neither a row nor a node (nil if nothing). plan may be nil if there is none.
//
// Messages name the node that is the reason, which is not always the one that waits.
func Summarize(plan *Plan, rows []v1alpha1.ComposedResource, err error) Health {
	view := newView(plan, rows)
	if plan != nil && plan.StatusError != nil && plan.pass != nil {
		view.failures = append(view.failures, "status: "+Truncated(plan.StatusError.Error()))
	}
	if err != nil && len(view.failures) == 0 {
		view.failures = append(view.failures, Truncated(err.Error()))
	}
	health := Health{
		Summary:    v1alpha1.SummaryInProgress,
		Conditions: []Condition{view.ready(), view.progressing(), view.synced()},
	}
	switch {
	case len(view.failures) > 0:
		health.Summary = v1alpha1.SummaryError
	case health.Conditions[0].Status == conditionTrue:
		health.Summary = v1alpha1.SummaryActive
	}
	return health
}

// SummarizeDeleting says how far the teardown of an instance is; err is what holds it up, if
// anything does.
func SummarizeDeleting(rows []v1alpha1.ComposedResource, err error) Health {
	message := "nothing is left to delete"
	if wave := TeardownWave(rows); len(wave) > 0 {
		described := make([]string, 0, len(wave))
		for _, row := range wave {
			described = append(described, describe(row))
		}
		message = "deleting " + several(described)
	}
	synced := Condition{v1alpha1.ConditionSynced, conditionTrue, v1alpha1.ReasonDeleting, message}
	if err != nil {
		synced = Condition{v1alpha1.ConditionSynced, conditionFalse, v1alpha1.ReasonFailed, Truncated(err.Error())}
	}
	return Health{
		Summary: v1alpha1.SummaryDeleting,
		Conditions: []Condition{
			{v1alpha1.ConditionReady, conditionFalse, v1alpha1.ReasonDeleting, message},
			{v1alpha1.ConditionProgressing, conditionTrue, v1alpha1.ReasonDeleting, message},
			synced,
		},
	}
}

const (
	conditionTrue  = "True"
	conditionFalse = "False"
)

// view sorts rows by what they mean for conditions. Each entry is a message.
type view struct {
	failures, deleting []string
	// reasons why children are not written or not ready, each once, those first that keep others from
	// being written.
	reasons []string
	// pending says that some are not written yet.
	pending bool
	// incomplete says why fields of the author's status are left out.
	incomplete []string
}

func newView(plan *Plan, rows []v1alpha1.ComposedResource) *view {
	v := &view{}
	var waiting []v1alpha1.ComposedResource
	for _, row := range slices.Concat(referenceRows(plan), rows) {
		switch row.State {
		case v1alpha1.StateFailed:
			v.failures = append(v.failures, describe(row)+": "+row.Message)
		case v1alpha1.StatePending, v1alpha1.StateUnverified:
			v.pending = true
			waiting = append(waiting, row)
		case v1alpha1.StateApplied:
			waiting = append(waiting, row)
		case v1alpha1.StateDeleting:
			v.deleting = append(v.deleting, describe(row))
		}
	}
	v.reasons = reasonsOf(waiting)
	if plan != nil {
		for _, missing := range plan.StatusWaiting {
			v.incomplete = append(v.incomplete, Truncated(plan.Explain(missing)))
		}
	}
	return v
}

// maxListed is how many things a condition's message lists; the rows have them all.
const maxListed = 3

func several(items []string) string {
	if len(items) <= maxListed {
		return strings.Join(items, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(items[:maxListed], "; "), len(items)-maxListed)
}

func (v *view) ready() Condition {
	c := Condition{Type: v1alpha1.ConditionReady, Status: conditionFalse}
	switch {
	case len(v.failures) > 0:
		c.Reason, c.Message = v1alpha1.ReasonFailed, several(v.failures)
	case v.pending:
		c.Reason, c.Message = v1alpha1.ReasonPending, several(v.reasons)
	case len(v.reasons) > 0:
		c.Reason, c.Message = v1alpha1.ReasonNotReady, several(v.reasons)
	default:
		c.Status, c.Reason, c.Message = conditionTrue, v1alpha1.ReasonAllReady, "all children are ready"
		if len(v.incomplete) > 0 {
			c.Message += "; fields of status are left out: " + several(v.incomplete)
		}
	}
	return c
}

func (v *view) progressing() Condition {
	c := Condition{Type: v1alpha1.ConditionProgressing, Status: conditionTrue}
	switch {
	case len(v.failures) > 0:
		c.Reason, c.Message = v1alpha1.ReasonFailed, "trying again: "+several(v.failures)
	case v.pending:
		c.Reason, c.Message = v1alpha1.ReasonPending, several(v.reasons)
	case len(v.reasons) > 0:
		c.Reason, c.Message = v1alpha1.ReasonNotReady, several(v.reasons)
	case len(v.deleting) > 0:
		c.Reason, c.Message = v1alpha1.ReasonDeleting, "deleting "+several(v.deleting)
	default:
		c.Status, c.Reason, c.Message = conditionFalse, v1alpha1.ReasonComplete, "nothing is left to do"
	}
	return c
}

func (v *view) synced() Condition {
	if len(v.failures) > 0 {
		return Condition{v1alpha1.ConditionSynced, conditionFalse, v1alpha1.ReasonFailed, several(v.failures)}
	}
	return Condition{v1alpha1.ConditionSynced, conditionTrue, v1alpha1.ReasonComplete, "every child that can be written is as wanted"}
}
