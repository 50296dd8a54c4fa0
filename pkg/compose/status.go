package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// status is what an instance's status is made from.
type status struct {
	plan   *engine.Plan // nil if none was made: then the author's fields stay as they are
	rows   []v1alpha1.ComposedResource
	health engine.Health
	// revision and generation that the rows were planned for.
	revision   string
	generation int64
	// author's conditions, and whether they are all that there are.
	author   []engine.Condition
	complete bool
	// partial says that children could not be read, so that a field's absence means nothing.
	partial bool
	// short says that what could be left out was left out, for want of room.
	short bool
}

// status is the status that goes with a plan.
func (w *work) status(plan *engine.Plan, rows []v1alpha1.ComposedResource) status {
	s := status{
		plan: plan, rows: rows,
		revision:   w.request.Program.SpecHash,
		generation: w.request.Instance.GetGeneration(),
		partial:    len(w.failed)+len(w.unreadable) > 0 || plan.StatusError != nil,
	}
	s.health = engine.Summarize(plan, rows, nil)
	var err error
	if s.author, s.complete, err = plan.Conditions(s.health.Conditions); err != nil {
		s.health = engine.Summarize(plan, rows, fmt.Errorf("conditions: %w", err))
	}
	return s
}

// intended is the status of an instance whose children are about to be written: the inventory, with the
// author's part as it is.
func (w *work) intended(plan *engine.Plan, rows []v1alpha1.ComposedResource) status {
	return status{
		rows:       rows,
		health:     engine.Summarize(plan, rows, nil),
		revision:   w.request.Program.SpecHash,
		generation: w.request.Instance.GetGeneration(),
	}
}

// failedChildren is the children that could not be read, checked or written, also those that the
// inventory lists and the plan doesn't speak of; and what the plan refers to and could not be read.
func (w *work) failedChildren(plan *engine.Plan) []finding {
	findings := w.unreadableReferences(plan)
	planned := map[v1alpha1.ObjectKey]bool{}
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		for _, child := range node.Children {
			planned[child.Key] = true
			if err := w.failed[child.Key]; err != nil {
				findings = append(findings, finding{node: node, key: child.Key, err: err})
			}
		}
	}
	for _, row := range w.rows {
		if err := w.failed[row.Key()]; row.Name != "" && !planned[row.Key()] && err != nil {
			findings = append(findings, finding{node: nodeOf(row), key: row.Key(), err: err})
		}
	}
	return findings
}

// describeRows is the plan's inventory, with what this call has found out about each child.
func (w *work) describeRows(plan *engine.Plan) []v1alpha1.ComposedResource {
	rows := engine.Rows(plan, w.rows)
	failed := map[string]v1alpha1.ComposedResource{}
	for i := range rows {
		if rows[i].Name != "" {
			w.describeRow(&rows[i])
		}
		if _, known := failed[rows[i].ID]; rows[i].State == v1alpha1.StateFailed && !known {
			failed[rows[i].ID] = rows[i]
		}
	}
	for i := range rows {
		w.describeReason(plan, &rows[i], failed)
	}
	return rows
}

// describeReason says of a child that pends for the sake of a node what is the matter with that node.
func (w *work) describeReason(plan *engine.Plan, row *v1alpha1.ComposedResource, failed map[string]v1alpha1.ComposedResource) {
	if row.State != v1alpha1.StatePending {
		return
	}
	if node := plan.Node(v1alpha1.NodeID(row.ID)); row.Name != "" && row.WaitingFor == "" && node != nil {
		if culprit, waits := w.culprit(plan, node); waits {
			row.WaitingFor, row.Message = string(culprit), plan.Explain(&engine.Waiting{Node: culprit})
		}
	}
	if culprit, is := failed[row.WaitingFor]; is {
		row.Message = engine.Truncated(describe(nodeOf(culprit), culprit.Key()) + " has failed: " + culprit.Message)
	}
}

// culprit is the node that holds back the others that this one depends on, and with them this one.
func (w *work) culprit(plan *engine.Plan, node *engine.NodePlan) (id v1alpha1.NodeID, waits bool) {
	for node != nil {
		dependency, held := w.heldDependency(node)
		if !held {
			return id, waits
		}
		id, waits, node = dependency, true, plan.Node(dependency)
	}
	return id, waits
}

func (w *work) describeRow(row *v1alpha1.ComposedResource) {
	key := row.Key()
	switch {
	case errors.Is(w.failed[key], context.Canceled): // nothing is wrong with the child: there was no time for it
	case w.failed[key] != nil:
		row.State, row.WaitingFor = v1alpha1.StateFailed, ""
		row.Message = engine.Truncated(w.explain(*row, w.failed[key]))
	case w.unverified[key] != nil:
		row.State, row.Message = v1alpha1.StateUnverified, engine.Truncated(w.unverified[key].Error())
	case w.observed[key] != nil && isTerminating(w.observed[key]) && row.State != v1alpha1.StateDeleting:
		row.State, row.Message = v1alpha1.StatePending, "is being deleted; another takes its place once it is gone"
	}
}

// explain is what a row says of a failure.
func (w *work) explain(row v1alpha1.ComposedResource, err error) string {
	return judge(w.request, finding{node: nodeOf(row), key: row.Key(), err: err}).reason
}

// setStatus writes status into the instance. Fields of the author's whose values aren't there yet are
// left out, unless it isn't known whether they are.
func (c *Composer) setStatus(instance *unstructured.Unstructured, s status) error {
	composition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.Composition{
		Revision: s.revision, ObservedGeneration: s.generation, Resources: s.rows,
	})
	if err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	conditions, err := c.conditions(instance, s)
	if err != nil {
		return err
	}
	before, _, _ := unstructured.NestedMap(instance.Object, "status")
	earlier := before["conditions"]
	fields := map[string]any{}
	if s.plan == nil || s.partial {
		fields = before
	}
	if fields == nil {
		fields = map[string]any{}
	}
	if s.plan != nil {
		for name, value := range s.plan.Status {
			fields[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	fields["composition"], fields["conditions"], fields["state"] = composition, conditions, string(s.health.Summary)
	instance.Object["status"] = fields
	return c.fit(instance, s, earlier)
}

// conditions are krop's, then the author's. One that says what it said before keeps its time.
func (c *Composer) conditions(instance *unstructured.Unstructured, s status) ([]any, error) {
	before, err := conditionsOf(instance)
	if err != nil {
		return nil, err
	}
	now := metav1.NewTime(c.clock.Now())
	after := make([]metav1.Condition, 0, len(before)+len(s.author))
	for _, given := range slices.Concat(s.health.Conditions, s.author) {
		after = append(after, timed(given, before, instance.GetGeneration(), now))
	}
	if !s.complete {
		for _, old := range before {
			if !has(after, old.Type) {
				after = append(after, old)
			}
		}
	}
	out := make([]any, 0, len(after))
	for i := range after {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after[i])
		if err != nil {
			return nil, fmt.Errorf("condition %s: %w", after[i].Type, err)
		}
		out = append(out, fields)
	}
	return out, nil
}

func timed(given engine.Condition, before []metav1.Condition, generation int64, now metav1.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: given.Type, Status: metav1.ConditionStatus(given.Status), Reason: given.Reason, Message: given.Message,
		ObservedGeneration: generation, LastTransitionTime: now,
	}
	for _, old := range before {
		if old.Type == given.Type && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return condition
}

func has(conditions []metav1.Condition, conditionType string) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
}

func conditionsOf(instance *unstructured.Unstructured) ([]metav1.Condition, error) {
	var holder struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := decodeStatus(instance, &holder); err != nil {
		return nil, fmt.Errorf("stored conditions: %w", err)
	}
	return holder.Conditions, nil
}

// compositionOf is the stored inventory. One that can't be read stops everything: without it, children would be lost.
func compositionOf(instance *unstructured.Unstructured) (v1alpha1.Composition, error) {
	var holder struct {
		Composition v1alpha1.Composition `json:"composition"`
	}
	if err := decodeStatus(instance, &holder); err != nil {
		return v1alpha1.Composition{}, fmt.Errorf("stored inventory: %w", err)
	}
	return holder.Composition, nil
}

func decodeStatus(instance *unstructured.Unstructured, into any) error {
	fields, ok := instance.Object["status"].(map[string]any)
	if !ok {
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
}
