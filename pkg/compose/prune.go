package compose

import (
	"context"
	"fmt"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Prune deletes the children that the inventory of a stored instance lists and the plan has decided
// against. The plan must be one that was made for this version of the instance, such as Apply's.
//
// That they are to be deleted is stored first: if somebody has written the instance meanwhile,
// nothing is deleted and the error is a Conflict.
func (c *Composer) Prune(ctx context.Context, request Request, plan *engine.Plan, intent Intent) (*Result, error) {
	composition, err := compositionOf(request.Instance)
	if err != nil {
		return nil, err
	}
	stale := engine.Stale(plan, composition.Resources)
	if len(stale) == 0 {
		return &Result{Instance: request.Instance.DeepCopy(), Plan: plan}, nil
	}
	stored, err := intent.Record(ctx, request.Instance)
	if err != nil {
		return nil, fmt.Errorf("recording which children are to be deleted: %w", err)
	}
	rows, failure := remover{composer: c, request: request}.waves(ctx, composition.Resources, stale, request.Program.Removable)
	pruned := stored.DeepCopy()
	if err := c.setStatus(pruned, prunedStatus(plan, rows, composition)); err != nil {
		return nil, err
	}
	recorded, err := record(ctx, intent, pruned)
	if err != nil {
		return nil, err
	}
	result := &Result{Instance: recorded, Plan: plan, Err: failure}
	if failure != nil {
		result.Warnings = []string{failure.Error()}
	}
	return result, nil
}

// prunedStatus is the status with the rows that are left. A node that has none left gets the row that
// says why.
func prunedStatus(plan *engine.Plan, rows []v1alpha1.ComposedResource, before v1alpha1.Composition) status {
	described := map[string]bool{}
	for _, row := range rows {
		described[row.ID] = true
	}
	for _, row := range engine.Rows(plan, nil) {
		if row.Name == "" && !described[row.ID] {
			rows = append(rows, row)
		}
	}
	s := status{
		rows: rows, health: engine.Summarize(plan, rows, nil),
		revision: before.Revision, generation: before.ObservedGeneration,
	}
	// Conditions that fail were reported when the plan was applied; what they said before is kept.
	s.author, s.complete, _ = plan.Conditions(s.health.Conditions)
	return s
}
