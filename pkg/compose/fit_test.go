package compose

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// TestAStatusThatDoesNotFitSaysSo gives an instance a status that etcd has no room for.
func TestAStatusThatDoesNotFitSaysSo(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	composer := New(nil, Options{Clock: now})
	instance := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Large",
		"metadata": map[string]any{"name": "large", "namespace": "default", "uid": "u"},
		"spec":     map[string]any{"text": strings.Repeat("s", budget.InstanceBytes.Default-1000)},
	}}
	row := v1alpha1.ComposedResource{
		ID: "config", Target: v1alpha1.TargetConsumer, APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps",
		Namespace: "default", Name: "large", UID: types.UID("c"), State: v1alpha1.StateReady, Message: "told at length",
	}
	wanted := status{
		plan: &engine.Plan{Status: map[string]any{"copy": strings.Repeat("a", 800<<10)}},
		rows: []v1alpha1.ComposedResource{row}, health: engine.Summarize(nil, []v1alpha1.ComposedResource{row}, nil),
	}
	if err := composer.setStatus(instance, wanted); err != nil {
		t.Fatal(err)
	}
	if size := engine.JSONSize(instance.Object); size > budget.StoredBytes.Default {
		t.Errorf("it has %d bytes, more than can be stored", size)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(instance.Object, "status", "copy"); found {
		t.Error("the field that doesn't fit is there")
	}
	composition, err := compositionOf(instance)
	if err != nil || len(composition.Resources) != 1 || composition.Resources[0].UID != row.UID {
		t.Errorf("the inventory is %v, %v, want the child", composition, err)
	}
	conditions, err := conditionsOf(instance)
	if err != nil || len(conditions) == 0 {
		t.Fatalf("conditions: %v, %v", conditions, err)
	}
	for _, condition := range conditions {
		if condition.Type == v1alpha1.ConditionSynced && (condition.Status != "False" || !strings.Contains(condition.Message, budget.StoredBytes.Name)) {
			t.Errorf("Synced is %s: %s", condition.Status, condition.Message)
		}
	}
	// What is said again keeps its time: otherwise each pass would write.
	before := instance.DeepCopy()
	now.SetTime(now.Now().Add(time.Hour))
	if err := composer.setStatus(instance, wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object["status"], instance.Object["status"]); diff != "" {
		t.Errorf("the same status again differs:\n%s", diff)
	}
}

// TestWhatDoesNotFitAtAllIsRefused has an inventory that is too large beside the instance.
func TestWhatDoesNotFitAtAllIsRefused(t *testing.T) {
	instance := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Large", "metadata": map[string]any{"name": "large"},
		"spec": map[string]any{"text": strings.Repeat("s", budget.StoredBytes.Default)},
	}}
	err := New(nil, Options{}).setStatus(instance, status{health: engine.Summarize(nil, nil, nil)})
	if err == nil || !strings.Contains(err.Error(), budget.StoredBytes.Name) {
		t.Errorf("got %v, want the bound to be named", err)
	}
}
