package integration

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCreateReturnsWithChildrenOnBothPlanes(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "creates")
	created := consumer.create(bundle("first", map[string]any{"text": "hi", "parts": []any{"a", "b"}}))

	must(t, consumer.has(configMaps, "first", "hi", "data", "text"))
	must(t, consumer.has(configMaps, "first-b", "b", "data", "part"))
	must(t, consumer.has(secrets, "first-sealed", encoded("hi"), "data", "text"))
	must(t, fieldIs(provider.child(configMaps, created, "far"), "hi", "data", "text"))
	must(t, fieldIs(created, "hi", "status", "text"))
	must(t, conditionIs(created, "Ready", "False"))
	for node, want := range map[string]string{"far": "Ready", "near": "Ready", "parts": "Ready", "sealed": "Ready", "relay": "Pending"} {
		if got := row(created, node)["state"]; got != want {
			t.Errorf("node %s is %v, want %s", node, got, want)
		}
	}
	if got, _ := row(created, "relay")["waitingFor"].(string); !strings.HasPrefix(got, "far.data.token") {
		t.Errorf("relay waits for %q", got)
	}
}

func TestChildrenAreMarkedAndOwned(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "marks")
	created := consumer.create(bundle("marked", nil))
	near := consumer.get(configMaps, "marked")
	far := provider.child(configMaps, created, "far")
	for _, child := range []*unstructured.Unstructured{near, far} {
		if got := child.GetLabels()["krop.opendefense.cloud/consumer-cluster"]; got != consumer.cluster() {
			t.Errorf("%s is marked with cluster %q, want %q", child.GetName(), got, consumer.cluster())
		}
		if _, ok := child.GetAnnotations()["krop.opendefense.cloud/consumer-cluster"]; ok {
			t.Errorf("%s carries the annotation that is for expressions only", child.GetName())
		}
	}
	owners := near.GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != created.GetUID() || owners[0].Kind != "Bundle" {
		t.Errorf("owners of the consumer's child are %v", owners)
	}
	if len(far.GetOwnerReferences()) != 0 {
		t.Errorf("the provider's child has owners of another workspace: %v", far.GetOwnerReferences())
	}
	if len(far.GetName()) > 63 || far.GetName() == "marked" {
		t.Errorf("the provider's child is called %q", far.GetName())
	}
}

func TestValueOfAControllerCrossesPlanesByWatch(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "crossing")
	created := consumer.create(bundle("crossing", nil))
	must(t, consumer.missing(configMaps, "crossing-relay"))

	provider.patch(configMaps, provider.child(configMaps, created, "far").GetName(), `{"data":{"token":"t-1"}}`)
	eventually(t, "the token arrives", func() error {
		if err := consumer.has(configMaps, "crossing-relay", "t-1", "data", "token"); err != nil {
			return err
		}
		return consumer.has(bundles, "crossing", "t-1", "status", "token")
	})
	eventually(t, "ready", func() error {
		return conditionIs(consumer.get(bundles, "crossing"), "Ready", "True")
	})

	provider.patch(configMaps, provider.child(configMaps, created, "far").GetName(), `{"data":{"token":"t-2"}}`)
	eventually(t, "a change of the token arrives", func() error {
		return consumer.has(configMaps, "crossing-relay", "t-2", "data", "token")
	})
}

func TestDriftIsRepairedByEvent(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "drifts")
	created := consumer.create(bundle("steady", map[string]any{"text": "as told", "labels": map[string]any{"k": "v"}}))
	far := provider.child(configMaps, created, "far").GetName()

	consumer.patch(configMaps, "steady", `{"data":{"text":"edited"}}`)
	provider.patch(configMaps, far, `{"data":{"text":"edited"}}`)
	eventually(t, "edits are undone", func() error {
		if err := provider.has(configMaps, far, "as told", "data", "text"); err != nil {
			return err
		}
		return consumer.has(configMaps, "steady", "as told", "data", "text")
	})

	consumer.delete(configMaps, "steady-map")
	provider.delete(configMaps, far)
	eventually(t, "deleted children come back", func() error {
		if err := provider.has(configMaps, far, "as told", "data", "text"); err != nil {
			return err
		}
		return consumer.has(configMaps, "steady-map", "v", "data", "k")
	})
}

func TestKeyThatIsNoLongerRenderedDisappears(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "keys")
	created := consumer.create(bundle("keyed", map[string]any{"labels": map[string]any{"keep": "1", "drop": "1"}}))
	farMap := provider.child(configMaps, created, "farMap").GetName()
	must(t, consumer.has(configMaps, "keyed-map", "1", "data", "drop"))

	consumer.patch(bundles, "keyed", `{"spec":{"labels":{"drop":null,"keep":"2"}}}`)
	must(t, consumer.has(configMaps, "keyed-map", "2", "data", "keep"))
	must(t, consumer.has(configMaps, "keyed-map", nil, "data", "drop"))
	must(t, provider.has(configMaps, farMap, "2", "data", "keep"))
	must(t, provider.has(configMaps, farMap, nil, "data", "drop"))
}

func TestFieldOfSomebodyElseIsLeftAlone(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "shares")
	created := consumer.create(bundle("shared", nil))
	far := provider.child(configMaps, created, "far").GetName()
	provider.patch(configMaps, far, `{"data":{"token":"theirs"},"metadata":{"annotations":{"example.org/note":"theirs"}}}`)
	consumer.patch(bundles, "shared", `{"spec":{"text":"changed"}}`)
	eventually(t, "the change arrives", func() error {
		return provider.has(configMaps, far, "changed", "data", "text")
	})
	must(t, provider.has(configMaps, far, "theirs", "data", "token"))
	must(t, provider.has(configMaps, far, "theirs", "metadata", "annotations", "example.org/note"))
}

func TestRefusalByQuotaAtTheSecondLevelLeavesNothing(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "quota")
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": map[string]any{"name": "none"},
		"spec":     map[string]any{"hard": map[string]any{"count/secrets": "0"}},
	}}
	_, err := consumer.in(quotas).Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the quota is enforced", func() error {
		return consumer.has(quotas, "none", "0", "status", "used", "count/secrets")
	})
	before := count(t, provider, configMaps)

	_, err = consumer.in(bundles).Create(t.Context(), bundle("toomuch", nil), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("the answer is %v, want 403 of the quota", err)
	}
	must(t, consumer.missing(bundles, "toomuch"))
	must(t, consumer.missing(configMaps, "toomuch"))
	if after := count(t, provider, configMaps); after != before {
		t.Errorf("the provider has %d ConfigMaps, had %d", after, before)
	}
}

func TestObjectOfSomebodyElseIsNotTakenOver(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "conflict")
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "taken"}, "data": map[string]any{"text": "theirs"},
	}}
	_, err := consumer.in(configMaps).Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	_, err = consumer.in(bundles).Create(t.Context(), bundle("taken", nil), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("the answer is %v, want 409", err)
	}
	must(t, consumer.missing(bundles, "taken"))
	must(t, consumer.has(configMaps, "taken", "theirs", "data", "text"))
}

func TestRefusedUpdateLeavesEverythingAsItWas(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "updates")
	created := consumer.create(bundle("stable", map[string]any{"text": "before"}))
	far := provider.child(configMaps, created, "far").GetName()
	patch := []byte(`{"spec":{"text":"after","parts":["Not A Name"]}}`)
	_, err := consumer.in(bundles).Patch(t.Context(), "stable", mergePatch, patch, metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("the answer is %v, want 422 for the name of a part", err)
	}
	must(t, consumer.has(bundles, "stable", "before", "spec", "text"))
	must(t, consumer.has(configMaps, "stable", "before", "data", "text"))
	must(t, provider.has(configMaps, far, "before", "data", "text"))
}

// TestEditOfABlueprintReachesInstances edits a blueprint of its own: instances converge to it, and what it no
// longer has is pruned.
func TestEditOfABlueprintReachesInstances(t *testing.T) {
	provider, consumer := theOffers(t), newUser(t, "edits")
	publishNote(provider, "before")
	bindNote(consumer)
	note := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "edit.example.org/v1alpha1", "kind": "Note",
		"metadata": map[string]any{"name": "n"}, "spec": map[string]any{"text": "x"},
	}}
	_, err := consumer.in(notes).Create(t.Context(), note, metav1.CreateOptions{})
	must(t, err)
	must(t, consumer.has(configMaps, "n-before", "x", "data", "text"))

	publishNote(provider, "after")
	eventually(t, "instances converge", func() error {
		if err := consumer.has(configMaps, "n-after", "x", "data", "text"); err != nil {
			return err
		}
		return consumer.missing(configMaps, "n-before")
	})
	err = provider.Resource(blueprints).Delete(t.Context(), "notes", metav1.DeleteOptions{})
	if !apierrors.IsConflict(err) {
		t.Errorf("deleting a blueprint with an instance answers %v, want 409", err)
	}
	consumer.delete(notes, "n")
	eventually(t, "the instance is gone", func() error { return consumer.missing(notes, "n") })
	must(t, provider.Resource(blueprints).Delete(t.Context(), "notes", metav1.DeleteOptions{}))
	eventually(t, "the export is gone", func() error {
		_, err := provider.Resource(exports).Get(t.Context(), "notes.edit.example.org", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the export: %v", err)
	})
}

func count(t *testing.T, of actor, resource resourceName) int {
	t.Helper()
	list, err := of.in(resource).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return len(list.Items)
}
