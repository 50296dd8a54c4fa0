package kind

import (
	"slices"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestDeleteWaitsForFinalizersAndHonoursPreconditions(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a", func(o *unstructured.Unstructured) {
		o.SetFinalizers([]string{"example.com/hold"})
	}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := types.UID("other")
	if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}); !apierrors.IsConflict(err) {
		t.Errorf("with another UID: %v", err)
	}
	if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deleting, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if deleting.GetDeletionTimestamp() == nil || deleting.GetUID() != created.GetUID() {
		t.Errorf("metadata %v", deleting.Object["metadata"])
	}
	deleting.SetFinalizers(nil)
	if _, err := client.Update(t.Context(), deleting, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

func TestPropagationPoliciesLeaveNoFinalizerBehind(t *testing.T) {
	store, _, client := served(t)
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan,
	} {
		object := widget(store.Kind, "a", func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
		})
		created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		created.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
		if _, err := client.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: still there: %v", policy, err)
		}
	}
}

func TestDeleteCollectionTakesWhatIsSelected(t *testing.T) {
	store, s, client := served(t)
	for _, name := range []string{"a", "b", "c"} {
		object := widget(store.Kind, name, with(name, "metadata", "labels", "name"))
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.client(t, two, nil).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "name!=c"})
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[logicalcluster.Name][]string{one: {"c"}, two: {"a", "b", "c"}} {
		list, err := s.client(t, cluster, nil).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || !slices.Equal(names(list), want) {
			t.Errorf("%s has %v, %v", cluster, names(list), err)
		}
	}
}
