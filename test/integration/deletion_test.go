package integration

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDeleteWaitsForChildrenInReverseOrder(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "reverse")
	consumer.create(bundle("held", nil))
	// sealed depends on near: it goes first, and holds what it depends on
	consumer.patch(secrets, "held-sealed", `{"metadata":{"finalizers":["example.org/hold"]}}`)
	consumer.delete(bundles, "held")
	eventually(t, "the dependent child is being deleted", func() error {
		if consumer.get(secrets, "held-sealed").GetDeletionTimestamp() == nil {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	eventually(t, "the instance says what it waits for", func() error {
		if state := row(consumer.get(bundles, "held"), "sealed")["state"]; state != "Deleting" {
			return fmt.Errorf("sealed is %v", state)
		}
		return nil
	})
	if consumer.get(configMaps, "held").GetDeletionTimestamp() != nil {
		t.Error("a child was deleted before the one that depends on it was gone")
	}
	consumer.patch(secrets, "held-sealed", `{"metadata":{"finalizers":null}}`)
	eventually(t, "all is gone", func() error {
		if err := consumer.missing(configMaps, "held"); err != nil {
			return err
		}
		return consumer.missing(bundles, "held")
	})
}

func TestNamespaceDeletionTakesInstancesAndTheirChildrenAlong(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "namespaces")
	inTeam := newInstanceIn(t, consumer, "team", "doomed")
	provider.child(configMaps, inTeam, "far")
	must(t, consumer.Resource(namespaces).Delete(t.Context(), "team", metav1.DeleteOptions{}))
	eventually(t, "the namespace is gone, and everything with it", func() error {
		_, err := consumer.Resource(namespaces).Get(t.Context(), "team", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace: %v", err)
		}
		return nothingOf(inTeam, provider)
	})
}

func TestInstanceIsRefusedInNamespaceThatIsNotThere(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "nowhere")
	lost := bundle("lost", nil)
	lost.SetNamespace("nowhere")
	_, err := consumer.Resource(bundles).Namespace("nowhere").Create(t.Context(), lost, metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("the answer is %v, want 404 for the namespace", err)
	}
}

func TestInstanceIsRefusedInTerminatingNamespace(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "terminating")
	held := newInstanceIn(t, consumer, "ending", "held")
	sealed, err := consumer.Resource(secrets).Namespace("ending").List(t.Context(), nodeSelector(held, "sealed"))
	must(t, err)
	hold := []byte(`{"metadata":{"finalizers":["example.org/hold"]}}`)
	name := sealed.Items[0].GetName()
	_, err = consumer.Resource(secrets).Namespace("ending").Patch(t.Context(), name, mergePatch, hold, metav1.PatchOptions{})
	must(t, err)
	must(t, consumer.Resource(namespaces).Delete(t.Context(), "ending", metav1.DeleteOptions{}))
	late := bundle("late", nil)
	late.SetNamespace("ending")
	_, err = consumer.Resource(bundles).Namespace("ending").Create(t.Context(), late, metav1.CreateOptions{})
	if !apierrors.HasStatusCause(err, "NamespaceTerminating") {
		t.Errorf("the answer is %v, want 403 because the namespace is terminating", err)
	}
	free := []byte(`{"metadata":{"finalizers":null}}`)
	_, err = consumer.Resource(secrets).Namespace("ending").Patch(t.Context(), name, mergePatch, free, metav1.PatchOptions{})
	must(t, err)
	eventually(t, "the namespace is gone", func() error {
		_, err := consumer.Resource(namespaces).Get(t.Context(), "ending", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace: %v", err)
	})
}

func TestDeleteCollectionDeletesWhatIsSelected(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "collections")
	var doomed []*unstructured.Unstructured
	for _, name := range []string{"one", "two"} {
		selected := bundle(name, nil)
		selected.SetLabels(map[string]string{"batch": "a"})
		doomed = append(doomed, consumer.create(selected))
	}
	kept := consumer.create(bundle("three", nil))
	must(t, consumer.in(bundles).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "batch=a"}))
	eventually(t, "the selected are gone", func() error {
		for _, instance := range doomed {
			if err := consumer.missing(bundles, instance.GetName()); err != nil {
				return err
			}
			if err := nothingOf(instance, consumer, provider); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, consumer.has(configMaps, "three", "hello", "data", "text"))
	provider.child(configMaps, kept, "far")
}

func TestUnbindReclaimsChildrenAtTheProvider(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "unbinds")
	created := consumer.create(bundle("left", nil))
	provider.child(configMaps, created, "far")
	consumer.kubectl("delete", "apibinding", "bundles", "--timeout=60s")
	eventually(t, "the provider's children are gone", func() error { return nothingOf(created, provider) })
}

// newInstanceIn makes a namespace and an instance in it.
func newInstanceIn(t *testing.T, consumer actor, space, name string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": space},
	}}
	_, err := consumer.Resource(namespaces).Create(t.Context(), made, metav1.CreateOptions{})
	must(t, err)
	instance := bundle(name, nil)
	instance.SetNamespace(space)
	created, err := consumer.Resource(bundles).Namespace(space).Create(t.Context(), instance, metav1.CreateOptions{})
	must(t, err)
	return created
}
