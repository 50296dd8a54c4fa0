package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// nodePlan is the plan of a node that writes config maps to the consumer.
func nodePlan(id string, outcome Outcome, names ...string) NodePlan {
	plan := NodePlan{
		Node:    &Node{ID: v1alpha1.NodeID(id), Target: v1alpha1.TargetConsumer, GVR: configMaps, GVK: configMaps.GroupVersion().WithKind("ConfigMap"), Namespaced: true},
		Outcome: outcome,
	}
	for _, name := range names {
		plan.Children = append(plan.Children, Child{Key: v1alpha1.ObjectKey{Target: v1alpha1.TargetConsumer, GroupResource: configMaps.GroupResource(), Namespace: "ns", Name: name}})
	}
	switch outcome {
	case Pending:
		plan.Waiting = &Waiting{Node: "other", Path: "status.x"}
	case Failed:
		plan.Err = &ExpressionError{Node: plan.ID, Message: "boom"}
	}
	return plan
}

// row is the row of a config map that a node has written.
func row(id, name string) v1alpha1.ComposedResource {
	return v1alpha1.ComposedResource{ID: id, Target: v1alpha1.TargetConsumer, APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps",
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), State: v1alpha1.StateReady}
}

func names(rows []v1alpha1.ComposedResource) []string {
	var out []string
	for _, row := range rows {
		out = append(out, row.ID+"/"+row.Name+"="+string(row.State))
	}
	return out
}

func TestRowsKeepWhatIsNotKnownToBeGone(t *testing.T) {
	for name, test := range map[string]struct {
		nodes    []NodePlan
		previous []v1alpha1.ComposedResource
		want     []string
	}{
		"a new child has a row before it is written": {
			nodes: []NodePlan{nodePlan("a", Desired, "x")},
			want:  []string{"a/x=Pending"},
		},
		"a node without children has a row without a name": {
			nodes: []NodePlan{nodePlan("a", Pending), nodePlan("b", Ignored), nodePlan("c", Failed)},
			want:  []string{"a/=Pending", "b/=Ignored", "c/=Failed"},
		},
		"children of a node that pends or fails stay, in its state": {
			nodes:    []NodePlan{nodePlan("a", Pending), nodePlan("b", Failed)},
			previous: []v1alpha1.ComposedResource{row("a", "x"), row("b", "y")},
			want:     []string{"a/x=Pending", "b/y=Failed"},
		},
		"children that are no longer wanted stay until they are gone": {
			nodes:    []NodePlan{nodePlan("a", Desired, "x"), nodePlan("b", Ignored)},
			previous: []v1alpha1.ComposedResource{row("a", "x"), row("a", "old"), row("b", "y")},
			want:     []string{"a/x=Pending", "a/old=Deleting", "b/y=Deleting"},
		},
		"children of a node that the program no longer has": {
			nodes:    []NodePlan{nodePlan("a", Desired, "x")},
			previous: []v1alpha1.ComposedResource{row("gone", "z")},
			want:     []string{"a/x=Pending", "gone/z=Deleting"},
		},
		"a node under a new id takes its child over": {
			nodes:    []NodePlan{nodePlan("new", Desired, "x")},
			previous: []v1alpha1.ComposedResource{row("old", "x")},
			want:     []string{"new/x=Pending"},
		},
		"while the node under its new id is undecided, the child is not stale": {
			nodes:    []NodePlan{nodePlan("new", Pending)},
			previous: []v1alpha1.ComposedResource{row("old", "x")},
			want:     []string{"new/=Pending", "old/x=Ready"},
		},
		"rows without a name are not kept": {
			nodes:    []NodePlan{nodePlan("a", Desired, "x")},
			previous: []v1alpha1.ComposedResource{{ID: "a", State: v1alpha1.StatePending}, {ID: "gone", State: v1alpha1.StateIgnored}},
			want:     []string{"a/x=Pending"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Rows(&Plan{Nodes: test.nodes}, test.previous)
			if diff := cmp.Diff(test.want, names(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// Planning again with the same must change nothing.
			if diff := cmp.Diff(got, Rows(&Plan{Nodes: test.nodes}, got)); diff != "" {
				t.Errorf("the second time: -first +second:\n%s", diff)
			}
		})
	}
}

func TestRowsKnowUIDs(t *testing.T) {
	node := nodePlan("a", Desired, "recreated", "unseen", "new")
	node.Children[0].Observed = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "second"}}}
	rows := Rows(&Plan{Nodes: []NodePlan{node}}, []v1alpha1.ComposedResource{row("a", "recreated"), row("a", "unseen")})
	var got []string
	for _, row := range rows {
		got = append(got, string(row.UID))
	}
	if diff := cmp.Diff([]string{"second", "uid-unseen", ""}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// externalPlan is the plan of a node that reads a config map of the consumer.
func externalPlan(id string, outcome Outcome, name string) NodePlan {
	plan := nodePlan(id, outcome)
	plan.External = true
	plan.Reference = &Reference{Target: v1alpha1.TargetConsumer, GVR: configMaps, Namespace: "ns", Name: name}
	if outcome == Pending {
		plan.Waiting = &Waiting{Node: plan.ID, Missing: "consumer ConfigMap ns/" + name}
	}
	return plan
}

func TestExternalNodesHaveNoRows(t *testing.T) {
	plan := &Plan{Nodes: []NodePlan{externalPlan("a", Desired, "x"), externalPlan("b", Pending, "y")}}
	if rows := Rows(plan, nil); len(rows) != 0 {
		t.Errorf("got %v", names(rows))
	}
	// What an earlier blueprint wrote under this id is not the external node's, whatever it reads.
	if stale := Stale(plan, []v1alpha1.ComposedResource{row("a", "x"), row("b", "z")}); len(stale) != 2 {
		t.Errorf("stale: %v", names(stale))
	}
}

func TestMissingReferencesHoldBackOnlyTheirDependents(t *testing.T) {
	plan := &Plan{Nodes: []NodePlan{externalPlan("vpc", Pending, "main"), nodePlan("dependent", Pending), nodePlan("independent", Desired, "x")}}
	before := row("vpc", "before")
	before.Resource = "secrets" // a config map could turn out to be the dependent's
	rows := []v1alpha1.ComposedResource{row("dependent", "d"), row("independent", "x"), row("independent", "old"), before}
	if diff := cmp.Diff([]string{"independent/old=Ready", "vpc/before=Ready"}, names(Stale(plan, rows))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []string{"dependent/d=Pending", "independent/x=Pending", "independent/old=Deleting", "vpc/before=Deleting"}
	if diff := cmp.Diff(want, names(Rows(plan, rows))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConditionsTellOfReferencesThatNothingWaitsFor(t *testing.T) {
	unreadable := externalPlan("b", Pending, "y")
	unreadable.Unreadable = "krop may not get configmaps"
	for name, test := range map[string]struct {
		node            NodePlan
		reason, message string
	}{
		"missing":    {externalPlan("a", Pending, "x"), v1alpha1.ReasonPending, `resource "a" (consumer ConfigMap ns/x) does not exist yet`},
		"unreadable": {unreadable, v1alpha1.ReasonFailed, `resource "b" (consumer ConfigMap ns/y): can't be read: krop may not get configmaps`},
	} {
		ready := Summarize(&Plan{Nodes: []NodePlan{test.node}}, nil, nil).Conditions[0]
		if ready.Status != "False" || ready.Reason != test.reason || ready.Message != test.message {
			t.Errorf("%s: %+v", name, ready)
		}
	}
}

func TestStaleNeedsADecision(t *testing.T) {
	moved := nodePlan("moved", Desired, "m")
	moved.Children[0].Key.Target, moved.Node.Target = v1alpha1.TargetProvider, v1alpha1.TargetProvider
	plan := &Plan{Nodes: []NodePlan{nodePlan("a", Desired, "x"), nodePlan("b", Ignored), nodePlan("c", Pending), nodePlan("d", Failed), moved}}
	rows := []v1alpha1.ComposedResource{row("a", "x"), row("a", "old"), row("b", "y"), row("c", "z"), row("d", "w"), row("gone", "v"), row("moved", "m"), {ID: "b"}}
	secret := row("gone", "s")
	secret.Resource, secret.Kind = "secrets", "Secret"
	rows = append(rows, secret)
	var got []string
	for _, row := range Stale(plan, rows) {
		got = append(got, row.ID+"/"+row.Name)
	}
	// gone/v might be what c or d will want; nobody can still want the Secret.
	want := []string{"a/old", "b/y", "moved/m", "gone/s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTeardownGoesFromTheHighestWave(t *testing.T) {
	rows := []v1alpha1.ComposedResource{row("a", "x"), row("b", "y"), row("c", "z"), {ID: "unnamed", Wave: 9}}
	rows[1].Wave, rows[2].Wave = 2, 2
	var waves [][]string
	for {
		wave := TeardownWave(rows)
		if len(wave) == 0 {
			break
		}
		var ids []string
		for _, row := range wave {
			ids = append(ids, row.ID)
		}
		waves = append(waves, ids)
		rows = slices.DeleteFunc(rows, func(row v1alpha1.ComposedResource) bool { return slices.Contains(ids, row.ID) })
	}
	if diff := cmp.Diff([][]string{{"b", "c"}, {"a"}}, waves); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSummarizeNamesTheReason(t *testing.T) {
	pending, applied, failed, deleting := row("a", "x"), row("b", "y"), row("c", "z"), row("d", "w")
	pending.State, pending.WaitingFor = v1alpha1.StatePending, "server.status.endpoint"
	applied.State, applied.WaitingFor = v1alpha1.StateApplied, "b (b.status.ok)"
	failed.State, failed.Message = v1alpha1.StateFailed, "quota exceeded"
	deleting.State = v1alpha1.StateDeleting
	for name, test := range map[string]struct {
		rows    []v1alpha1.ComposedResource
		err     error
		summary v1alpha1.Summary
		// ready, progressing and synced are status, reason and a part of the message.
		ready, progressing, synced [3]string
	}{
		"all ready": {
			rows: []v1alpha1.ComposedResource{row("a", "x")}, summary: v1alpha1.SummaryActive,
			ready: [3]string{"True", "AllReady"}, progressing: [3]string{"False", "Complete"}, synced: [3]string{"True", "Complete"},
		},
		"no children at all": {
			summary: v1alpha1.SummaryActive,
			ready:   [3]string{"True", "AllReady"}, progressing: [3]string{"False", "Complete"}, synced: [3]string{"True", "Complete"},
		},
		"pending": {
			rows: []v1alpha1.ComposedResource{pending, applied}, summary: v1alpha1.SummaryInProgress,
			ready: [3]string{"False", "Pending", "server.status.endpoint"}, progressing: [3]string{"True", "Pending", "server.status.endpoint"}, synced: [3]string{"True", "Complete"},
		},
		"not ready": {
			rows: []v1alpha1.ComposedResource{applied}, summary: v1alpha1.SummaryInProgress,
			ready: [3]string{"False", "NotReady", "b.status.ok"}, progressing: [3]string{"True", "NotReady", "b.status.ok"}, synced: [3]string{"True", "Complete"},
		},
		"failed": {
			rows: []v1alpha1.ComposedResource{pending, failed}, summary: v1alpha1.SummaryError,
			ready: [3]string{"False", "Failed", `resource "c" (consumer ConfigMap ns/z): quota exceeded`}, progressing: [3]string{"True", "Failed", "quota"}, synced: [3]string{"False", "Failed", "quota"},
		},
		"pruning": {
			rows: []v1alpha1.ComposedResource{row("a", "x"), deleting}, summary: v1alpha1.SummaryActive,
			ready: [3]string{"True", "AllReady"}, progressing: [3]string{"True", "Deleting", "ns/w"}, synced: [3]string{"True", "Complete"},
		},
		"an error beside the rows": {
			rows: []v1alpha1.ComposedResource{row("a", "x")}, err: errors.New("plane not reachable"), summary: v1alpha1.SummaryError,
			ready: [3]string{"False", "Failed", "not reachable"}, progressing: [3]string{"True", "Failed", "not reachable"}, synced: [3]string{"False", "Failed", "not reachable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			health := Summarize(&Plan{}, test.rows, test.err)
			if health.Summary != test.summary {
				t.Errorf("summary is %s, expected %s", health.Summary, test.summary)
			}
			for i, want := range [][3]string{test.ready, test.progressing, test.synced} {
				got := health.Conditions[i]
				if got.Status != want[0] || got.Reason != want[1] || !strings.Contains(got.Message, want[2]) {
					t.Errorf("got %+v, expected %v", got, want)
				}
			}
		})
	}
}

func TestSummarizeDeletingNamesWhatIsLeft(t *testing.T) {
	rows := []v1alpha1.ComposedResource{row("a", "x"), row("b", "y")}
	rows[1].Wave = 1
	health := SummarizeDeleting(rows, nil)
	if health.Summary != v1alpha1.SummaryDeleting || !strings.Contains(health.Conditions[0].Message, "ns/y") || strings.Contains(health.Conditions[0].Message, "ns/x") {
		t.Errorf("got %+v", health)
	}
	held := SummarizeDeleting(rows, errors.New("forbidden"))
	if synced := held.Conditions[2]; synced.Status != "False" || synced.Message != "forbidden" {
		t.Errorf("got %+v", synced)
	}
}
