package blueprint_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

var conflict = apierrors.NewConflict(schema.GroupResource{Resource: "apiexports"}, export.Name, errors.New("it is another blueprint's"))

// second stores a second blueprint of the same kind, as another replica could at the same moment.
func (s *setup) second(t *testing.T) v1alpha1.InstanceKey {
	t.Helper()
	served, ok := s.catalog.Lookup(export)
	if !ok {
		t.Fatal("not served")
	}
	s.catalog.Remove(export)
	s.publisher.ownerErr, s.publisher.err = conflict, conflict
	other := object(t, widgets)
	other.SetName("others")
	if _, err := s.main.Create(s.ctx, other, nil, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, served := s.catalog.Lookup(export); served || s.publisher.published > 1 {
		t.Error("served, for a moment at least, although another blueprint publishes the kind")
	}
	s.catalog.Set(served)
	s.publisher.ownerErr, s.publisher.err = nil, nil
	return v1alpha1.InstanceKey{Export: home, Cluster: provider, Name: "others"}
}

func TestDeletingTheBlueprintThatCameSecondLeavesTheFirstAlone(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	instances := s.addInstance(t)
	second := s.second(t)
	if _, err := s.main.Ensure(t.Context(), second); !apierrors.IsConflict(err) {
		t.Errorf("%v, want Conflict", err)
	}
	if _, gone, err := s.main.Delete(s.ctx, second.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil || !gone {
		t.Errorf("gone %v, %v", gone, err)
	}
	if served, ok := s.catalog.Lookup(export); !ok || served.Blueprint() != "widgets" || s.publisher.unpublished != 0 {
		t.Error("the first is no longer served, or unpublished")
	}
	if left, err := instances.List(t.Context()); err != nil || len(left) != 1 || left[0].GetDeletionTimestamp() != nil {
		t.Errorf("its instances: %v, %v", left, err)
	}
	s.addInstance(t) // its gate is open
}

func TestBlueprintThatLosesTheExportWhilePublishingIsNotServed(t *testing.T) {
	s := start(t)
	s.publisher.err = conflict
	s.publisher.onPublish = func() { s.publisher.ownerErr = conflict } // another replica was faster
	s.create(t, widgets)
	if _, served := s.catalog.Lookup(export); served || s.loop.serving[export] {
		t.Error("served although another blueprint publishes the kind")
	}
	s.main.Expect(s.stored(t)) // as on a replica that hears of it
	if s.catalog.Held(export) {
		t.Error("the other's export is held for it")
	}
}

func TestExportThatIsHeldForAnotherBlueprintIsRefused(t *testing.T) {
	s := start(t)
	s.catalog.Hold(export, "others")
	if _, err := s.tryCreate(t, widgets); !apierrors.IsConflict(err) {
		t.Errorf("%v, want Conflict", err)
	}
}

func TestExportOfTheBlueprintKindIsRefused(t *testing.T) {
	s := start(t)
	s.catalog.Set(&registry.Served{Export: export}) // as if krop's own workspace had the blueprint
	if _, err := s.tryCreate(t, widgets); !apierrors.IsConflict(err) {
		t.Errorf("%v, want Conflict", err)
	}
}
