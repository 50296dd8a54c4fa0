package blueprint_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestPublishedObjectsAreKeptUp(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	version := s.stored(t).GetResourceVersion()
	if err := s.ensure(t); err != nil || s.publisher.published != 2 {
		t.Errorf("%v, published %d times, want again at each look", err, s.publisher.published)
	}
	if now := s.stored(t).GetResourceVersion(); now != version {
		t.Errorf("the blueprint was written although nothing had changed: version %s, was %s", now, version)
	}
	s.publisher.err = errors.New("somebody has deleted the export, and kcp is away")
	if err := s.ensure(t); err == nil {
		t.Error("nothing is left to be tried again")
	}
	published := func() bool {
		return meta.IsStatusConditionTrue(s.get(t).Status.Conditions, v1alpha1.ConditionPublished)
	}
	if published() {
		t.Error("still called published")
	}
	s.publisher.err = nil
	if err := s.ensure(t); err != nil || !published() {
		t.Errorf("not published again although the hash is that of an earlier success: %v", err)
	}
}

func TestServingSpeaksOfTheGenerationAfterAnEdit(t *testing.T) {
	s := start(t)
	s.routing.bound = true
	s.create(t, widgets)
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	edited := s.stored(t)
	_ = unstructured.SetNestedField(edited.Object, "integer", "spec", "schema", "spec", "count")
	if _, _, err := s.main.Update(s.ctx, "widgets", rest.DefaultUpdatedObjectInfo(edited), nil, nil, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := s.get(t)
	for _, condition := range got.Status.Conditions {
		if condition.ObservedGeneration != got.Generation || condition.Status != metav1.ConditionTrue {
			t.Errorf("%s is %s as of generation %d, want True as of %d", condition.Type, condition.Status, condition.ObservedGeneration, got.Generation)
		}
	}
}

func TestWhatCannotBeFollowedIsTriedAgain(t *testing.T) {
	s := start(t)
	s.loop.err = errors.New("bindings can't be followed")
	if created := s.create(t, widgets); meta.IsStatusConditionTrue(created.Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("ready although nobody follows its bindings")
	}
	if err := s.ensure(t); err == nil {
		t.Error("nothing is left to be tried again")
	}
	s.loop.err = nil
	if err := s.ensure(t); err != nil {
		t.Error(err)
	}
}

func TestBlueprintThatAnotherReplicaDeletedIsNoLongerServed(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	stored := s.stored(t)
	if _, _, err := s.main.Store.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.main.Records().Finalize(t.Context(), stored); err == nil { // under the version before the deletion
		t.Fatal("finalized under an old version")
	}
	if err := s.main.Records().Finalize(t.Context(), s.stored(t)); err != nil {
		t.Fatal(err)
	}
	exists, err := s.main.Ensure(t.Context(), key)
	if err != nil || exists {
		t.Errorf("exists %v, %v", exists, err)
	}
	if _, served := s.catalog.Lookup(export); served || s.loop.serving[export] {
		t.Error("still served, or looked after")
	}
	if s.publisher.unpublished != 0 {
		t.Error("unpublished, which is the work of the replica that let it go")
	}
}

// TestStatusThatAnotherReplicaHasWrittenIsNoFailure has another replica record something while this one publishes.
func TestStatusThatAnotherReplicaHasWrittenIsNoFailure(t *testing.T) {
	s := start(t)
	s.publisher.onPublish = func() {
		s.publisher.onPublish = nil
		stored := s.stored(t)
		if err := unstructured.SetNestedField(stored.Object, "another", "status", "identityHash"); err != nil {
			t.Error(err)
		}
		if _, err := s.main.Records().Record(s.ctx, stored); err != nil {
			t.Error(err)
		}
	}
	var warned warnings
	s.ctx = warning.WithWarningRecorder(s.ctx, &warned)
	s.create(t, widgets)
	if len(warned) > 0 {
		t.Errorf("warned: %v", warned)
	}
	if got := s.get(t).Status; got.IdentityHash != "identity" || got.ObservedSpecHash == "" {
		t.Errorf("status %+v, want what was published", got)
	}
}
