package instance_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

func (s *setup) delete(t *testing.T, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	if _, _, err := s.main.Delete(s.ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{PropagationPolicy: ptr.To(policy)}); err != nil {
		t.Fatal(err)
	}
}

func isOrphaning(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[v1alpha1.AnnotationOrphanChildren] != ""
}

func TestOrphaningAndDeletionAreStoredAtOnce(t *testing.T) {
	s := start(t)
	s.create(t, "one")
	events := make(chan string, 16)
	go func() {
		_ = s.main.Records().Watch(t.Context(), func(_ watch.EventType, object *unstructured.Unstructured) {
			switch {
			case object == nil:
				events <- "listed"
			case object.GetDeletionTimestamp() != nil && isOrphaning(object):
				events <- "deleting and orphaning"
			case object.GetDeletionTimestamp() != nil || isOrphaning(object):
				events <- "half of it"
			}
		})
	}()
	wantEvent(t, events, "listed")
	s.delete(t, "one", metav1.DeletePropagationOrphan)
	wantEvent(t, events, "deleting and orphaning")
	s.delete(t, "one", metav1.DeletePropagationBackground)
	if !isOrphaning(s.get(t, "one")) {
		t.Error("a later deletion took back what the first one said")
	}
}

func TestADeletionThatDoesNotOrphanTakesAnOldMarkOff(t *testing.T) {
	s := start(t)
	marked := s.create(t, "one")
	marked.SetAnnotations(map[string]string{v1alpha1.AnnotationOrphanChildren: "true"})
	_, _, err := s.main.Store.Update(kind.WithInternal(s.ctx), "one", rest.DefaultUpdatedObjectInfo(marked),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil || !isOrphaning(s.get(t, "one")) {
		t.Fatalf("not marked: %v", err)
	}
	s.delete(t, "one", metav1.DeletePropagationBackground)
	if isOrphaning(s.get(t, "one")) {
		t.Error("the mark of a deletion that never was is still there")
	}
}
