package blueprint_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
)

// gadgets is another provider's, which widgets are composed of.
var gadgets = v1alpha1.ExportKey{Cluster: "provider2", Name: "gadgets.example.org"}

const composite = widgets + `
  resources:
  - {id: first, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}}
  - {id: gadget, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}}
`

// nest says that the gadgets of composite are of their export.
func (s *setup) nest() {
	s.origins = func(context.Context, *engine.Program) (map[v1alpha1.NodeID]v1alpha1.ExportKey, error) {
		return map[v1alpha1.NodeID]v1alpha1.ExportKey{"gadget": gadgets}, nil
	}
}

// serveGadgets has gadgets composed of an export's kind.
func (s *setup) serveGadgets(of v1alpha1.ExportKey) {
	s.catalog.Set(&registry.Served{Export: gadgets, Program: &engine.Program{
		Blueprint: "gadgets", Export: gadgets, Nodes: []engine.Node{{ID: "back", Origin: of}},
	}})
}

const wayRound = "widgets (workspace provider1) -> gadgets (workspace provider2) -> widgets (workspace provider1)"

func TestABlueprintThatClosesALoopIsRefused(t *testing.T) {
	s := start(t)
	s.nest()
	s.serveGadgets(export)
	_, err := s.tryCreate(t, composite)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("%v, want 422", err)
	}
	causes := status.Status().Details.Causes
	if len(causes) != 1 || causes[0].Field != "spec.resources[1]" || !strings.Contains(causes[0].Message, wayRound) {
		t.Errorf("causes %+v", causes)
	}
	if _, served := s.catalog.Lookup(export); served || s.publisher.published != 0 {
		t.Error("served or published")
	}
}

// TestALoopThatCameAboutIsTold is two blueprints that were written at one time, each before the other was known.
func TestALoopThatCameAboutIsTold(t *testing.T) {
	s := start(t)
	s.nest()
	s.create(t, composite)
	s.serveGadgets(export)
	var cycle *registry.CycleError
	if err := s.ensure(t); !errors.As(err, &cycle) {
		t.Fatalf("%v, want a loop, to be looked at again", err)
	}
	compiled := meta.FindStatusCondition(s.get(t).Status.Conditions, v1alpha1.ConditionCompiled)
	if compiled.Status != metav1.ConditionFalse || compiled.Reason != v1alpha1.ReasonCycle || !strings.Contains(compiled.Message, wayRound) {
		t.Errorf("compiled: %+v", compiled)
	}
	served, ok := s.catalog.Lookup(export)
	if !ok {
		t.Fatal("its instances can't be read or deleted any more")
	}
	nesting := registry.Nesting{Catalog: s.catalog}
	if err := nesting.AdmitNew(served.Program, object(t, widgets)); !apierrors.IsInvalid(err) {
		t.Errorf("a new instance: %v, want 422", err)
	}
	s.serveGadgets(v1alpha1.ExportKey{}) // the other was mended
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(s.get(t).Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%+v", s.get(t).Status.Conditions)
	}
}

func TestABlueprintWaitsWhileItIsNotKnownWhatItIsComposedOf(t *testing.T) {
	s := start(t)
	s.origins = func(context.Context, *engine.Program) (map[v1alpha1.NodeID]v1alpha1.ExportKey, error) {
		return nil, errors.New("kcp is away")
	}
	if _, err := s.tryCreate(t, composite); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("%v, want 503", err)
	}
}
