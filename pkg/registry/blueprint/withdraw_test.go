package blueprint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// restart forgets what is served; from now on the blueprint doesn't compile.
func (s *setup) restart(t *testing.T) {
	t.Helper()
	s.catalog.Remove(export)
	s.loop.serving = map[v1alpha1.ExportKey]bool{}
	s.schemasErr = apierrors.NewBadRequest("a kind is gone")
	if err := s.ensure(t); err == nil || !s.catalog.Held(export) {
		t.Fatalf("%v, held %v", err, s.catalog.Held(export))
	}
}

func (s *setup) force(t *testing.T) {
	t.Helper()
	forced := s.stored(t)
	forced.SetAnnotations(map[string]string{v1alpha1.AnnotationForceDelete: "true", v1alpha1.AnnotationCluster: provider.String()})
	if _, _, err := s.main.Update(s.ctx, "widgets", rest.DefaultUpdatedObjectInfo(forced), nil, nil, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *setup) delete() (gone bool, err error) {
	_, gone, err = s.main.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return gone, err
}

func TestUnusedBlueprintThatDoesNotCompileCanBeDeleted(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	s.restart(t)
	if gone, err := s.delete(); err != nil || !gone || s.publisher.unpublished != 1 {
		t.Errorf("gone %v, %v, unpublished %d times", gone, err, s.publisher.unpublished)
	}
	if s.catalog.Held(export) {
		t.Error("still held")
	}
}

func TestInstancesOfABlueprintThatDoesNotCompileAreCounted(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	s.addInstance(t)
	s.restart(t)
	if _, err := s.delete(); !apierrors.IsConflict(err) {
		t.Errorf("%v, want Conflict", err)
	}
}

func TestForcedDeletionOfABlueprintThatDoesNotCompileTearsItsInstancesDown(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	instances := s.addInstance(t)
	s.force(t)
	s.restart(t)
	if gone, err := s.delete(); err != nil || gone {
		t.Fatalf("gone %v, %v", gone, err)
	}
	left, err := instances.List(t.Context())
	if err != nil || len(left) != 1 || left[0].GetDeletionTimestamp() == nil || left[0].GetUID() == "" {
		t.Fatalf("instances are not being deleted: %v, %v", left, err)
	}
	if !s.loop.serving[export] {
		t.Error("nobody tears them down")
	}
	if err := instances.Finalize(t.Context(), &left[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.ensure(t); err != nil || s.publisher.unpublished != 1 || s.loop.serving[export] || s.catalog.Held(export) {
		t.Errorf("%v, unpublished %d times", err, s.publisher.unpublished)
	}
}

func TestInstanceThatSlippedInIsNotDeletedUnasked(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	if _, _, err := s.main.Store.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	instances := s.addInstance(t) // on a replica that hasn't heard of the deletion
	var waiting *blueprint.InstancesLeftError
	if err := s.ensure(t); !errors.As(err, &waiting) || waiting.Deleting {
		t.Errorf("%v", err)
	}
	if left, err := instances.List(t.Context()); err != nil || len(left) != 1 || left[0].GetDeletionTimestamp() != nil {
		t.Errorf("%v, %v", left, err)
	}
}

func TestWhileItsBlueprintIsBeingDeletedAKindTakesUpdatesAndDeletesOnly(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	instances := s.addInstance(t)
	s.force(t)
	if _, err := s.delete(); err != nil {
		t.Fatal(err)
	}
	served, _ := s.catalog.Lookup(export)
	storage := served.Storage["widgets"].(rest.StandardStorage)
	ctx := genericapirequest.WithNamespace(etcd.WithCluster(t.Context(), "consumer1"), "default")
	left, err := instances.List(t.Context())
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	if _, _, err := storage.Update(ctx, left[0].GetName(), rest.DefaultUpdatedObjectInfo(&left[0]), nil, nil, false, &metav1.UpdateOptions{}); err != nil {
		t.Errorf("update: %v", err)
	}
	if _, _, err := storage.Delete(ctx, left[0].GetName(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
	for name, create := range map[string]func(*unstructured.Unstructured) error{
		"create": func(widget *unstructured.Unstructured) error {
			_, err := storage.Create(ctx, widget, nil, &metav1.CreateOptions{})
			return err
		},
		"create by apply": func(widget *unstructured.Unstructured) error {
			_, _, err := storage.Update(ctx, "late", rest.DefaultUpdatedObjectInfo(widget), nil, nil, true, &metav1.UpdateOptions{})
			return err
		},
	} {
		err := create(object(t, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: late, namespace: default}}"))
		if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsServiceUnavailable(err) || !retry || seconds == 0 {
			t.Errorf("%s: %v, want 503 with Retry-After", name, err)
		}
	}
}

func TestDeletionWaitsForCreatesNoLongerThanItsRequest(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	served, _ := s.catalog.Lookup(export)
	leave, err := served.Gate.Enter()
	if err != nil {
		t.Fatal(err)
	}
	whole := s.ctx
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(whole, 50*time.Millisecond)
	defer cancel()
	if _, err := s.delete(); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("%v, want 503", err)
	}
	leave()
	s.ctx = whole
	s.addInstance(t) // the deletion was refused, so the gate is open
}
