package engine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestReadyNamesTheCulpritBeforeThoseThatWait(t *testing.T) {
	approval, creds := row("approval", "a"), row("creds", "")
	waiting := &Waiting{Node: "approval", Expression: "approval.data.approved == 'true'", ReadyWhen: true}
	plan := &Plan{Nodes: []NodePlan{{Node: &Node{ID: "approval", Target: v1alpha1.TargetConsumer, GVK: schema.GroupVersionKind{Kind: "ConfigMap"}}}}}
	for _, row := range []*v1alpha1.ComposedResource{&approval, &creds} {
		row.State, row.WaitingFor, row.Message = v1alpha1.StatePending, waiting.String(), plan.Explain(waiting)
	}
	approval.State = v1alpha1.StateApplied
	independent := row("other", "o")
	independent.State = v1alpha1.StateApplied
	ready := Summarize(plan, []v1alpha1.ComposedResource{independent, creds, approval}, nil).Conditions[0]
	want := `resource "approval" (consumer ConfigMap) is not ready: readyWhen approval.data.approved == 'true' does not hold (awaited by "creds"); ` +
		`resource "other" (consumer ConfigMap ns/o) is not ready`
	if ready.Status != "False" || ready.Reason != v1alpha1.ReasonPending || ready.Message != want {
		t.Errorf("%s", ready.Message)
	}
}

// Ready is about children; a field of the author's that has no value yet is said there too, since nothing else
// would say why it isn't there.
func TestReadySaysWhyFieldsOfStatusAreLeftOut(t *testing.T) {
	server := row("server", "db")
	server.State = v1alpha1.StateReady
	plan := &Plan{
		Nodes: []NodePlan{{
			Node:     &Node{ID: "server", Target: v1alpha1.TargetProvider, GVK: schema.GroupVersionKind{Kind: "Server"}},
			Outcome:  Desired,
			Children: []Child{{Key: v1alpha1.ObjectKey{Target: v1alpha1.TargetProvider, Namespace: "dbs", Name: "db-x1"}}},
		}},
		StatusWaiting: []*Waiting{{Node: "server", Path: "status.endpoint", Expression: "server.status.endpoint"}},
	}
	ready := Summarize(plan, []v1alpha1.ComposedResource{server}, nil).Conditions[0]
	want := "all children are ready; fields of status are left out: server.status.endpoint is not set on provider Server dbs/db-x1 yet"
	if ready.Status != "True" || ready.Message != want {
		t.Errorf("%s", ready.Message)
	}
}

func TestMessagesAreNotCutWithinACharacter(t *testing.T) {
	for shift := range 4 {
		cut := Truncated(strings.Repeat("a", shift) + strings.Repeat("日", maxMessage))
		if !utf8.ValidString(cut) || len(cut) > maxMessage+len("…") {
			t.Errorf("shifted by %d: %d bytes, valid is %t", shift, len(cut), utf8.ValidString(cut))
		}
	}
}
