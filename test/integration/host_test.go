package integration

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/test/testbed"
)

func TestHostHasItsChildrenWhenCreateReturns(t *testing.T) {
	provider, consumer, host := theRigs(t), newRigger(t, "hosted"), theHost(t)
	created := consumer.createRig("first", map[string]any{"text": "hi"})
	far := host.child(configMaps, created, "far")
	must(t, fieldIs(far, "hi", "data", "text"))
	must(t, fieldIs(host.child(secrets, created, "sealed"), encoded("hi"), "data", "text"))
	must(t, consumer.has(configMaps, "first", "hi", "data", "text"))
	if len(far.GetName()) > 63 || far.GetName() == "first" || !strings.HasPrefix(far.GetName(), "first-") || len(far.GetOwnerReferences()) > 0 {
		t.Errorf("the child is called %q, its owners are %v", far.GetName(), far.GetOwnerReferences())
	}
	labels := far.GetLabels()
	if labels[v1alpha1.LabelConsumerCluster] != consumer.cluster() || labels[v1alpha1.LabelProviderCluster] != provider.cluster() || labels[v1alpha1.LabelInstallation] == "" {
		t.Errorf("the child is marked %v", labels)
	}
	for node, want := range map[string]string{"far": "Ready", "sealed": "Ready", "account": "Ready", "relay": "Pending"} {
		if got := row(created, node)["state"]; got != want {
			t.Errorf("node %s is %v, want %s", node, got, want)
		}
	}
}

func TestValueFromTheHostArrivesByWatch(t *testing.T) {
	consumer, host := newRigger(t, "fromhost"), theHost(t)
	created := consumer.createRig("crossing", nil)
	far := host.child(configMaps, created, "far").GetName()
	for _, token := range []string{"t-1", "t-2"} {
		host.patch(configMaps, far, fmt.Sprintf(`{"data":{"token":%q}}`, token))
		eventually(t, token+" arrives", func() error {
			if err := consumer.has(configMaps, "crossing-relay", token, "data", "token"); err != nil {
				return err
			}
			return consumer.has(rigs, "crossing", token, "status", "token")
		})
	}
	eventually(t, "ready", func() error { return conditionIs(consumer.get(rigs, "crossing"), "Ready", "True") })
}

func TestDriftOnTheHostIsRepairedByEvent(t *testing.T) {
	consumer, host := newRigger(t, "hostdrift"), theHost(t)
	created := consumer.createRig("steady", map[string]any{"text": "as told"})
	far, sealed := host.child(configMaps, created, "far").GetName(), host.child(secrets, created, "sealed").GetName()
	host.patch(configMaps, far, `{"data":{"text":"edited"}}`)
	host.delete(secrets, sealed)
	eventually(t, "an edit is undone, and what was deleted comes back", func() error {
		if err := host.has(configMaps, far, "as told", "data", "text"); err != nil {
			return err
		}
		return host.has(secrets, sealed, encoded("as told"), "data", "text")
	})
	host.patch(configMaps, far, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, v1alpha1.LabelProviderCluster))
	eventually(t, "a mark that was taken off comes back", func() error {
		if host.get(configMaps, far).GetLabels()[v1alpha1.LabelProviderCluster] == "" {
			return fmt.Errorf("it is still without")
		}
		return nil
	})
}

func TestWhatIsNoLongerWantedOnTheHostGoes(t *testing.T) {
	consumer, host := newRigger(t, "hostprune"), theHost(t)
	created := consumer.createRig("less", map[string]any{"labels": map[string]any{"keep": "1", "drop": "1"}})
	farMap, account := host.child(configMaps, created, "farMap").GetName(), host.child(serviceAccounts, created, "account").GetName()
	consumer.patch(rigs, "less", `{"spec":{"account":false,"labels":{"drop":null,"keep":"2"}}}`)
	must(t, host.has(configMaps, farMap, "2", "data", "keep"))
	must(t, host.has(configMaps, farMap, nil, "data", "drop"))
	eventually(t, "the account goes", func() error { return host.missing(serviceAccounts, account) })
}

func TestDeletionOnTheHostIsInReverseOrder(t *testing.T) {
	consumer, host := newRigger(t, "hostdelete"), theHost(t)
	created := consumer.createRig("leaving", nil)
	far, sealed := host.child(configMaps, created, "far").GetName(), host.child(secrets, created, "sealed").GetName()
	host.patch(secrets, sealed, `{"metadata":{"finalizers":["example.org/held"]}}`)
	consumer.delete(rigs, "leaving")
	eventually(t, "the row says what it waits for", func() error {
		r := row(consumer.get(rigs, "leaving"), "sealed")
		if message, _ := r["message"].(string); r["state"] != "Deleting" || !strings.Contains(message, "example.org/held") {
			return fmt.Errorf("row: %v", r)
		}
		return nil
	})
	must(t, host.has(configMaps, far, "hello", "data", "text")) // others depend on it
	host.patch(secrets, sealed, `{"metadata":{"finalizers":null}}`)
	eventually(t, "all is gone", func() error {
		if err := consumer.missing(rigs, "leaving"); err != nil {
			return err
		}
		return nothingOf(created, host, consumer)
	})
}

// TestNamesOnTheHostDoNotCollide has four instances of one name: of two consumers, in two namespaces each.
func TestNamesOnTheHostDoNotCollide(t *testing.T) {
	host := theHost(t)
	names := map[string]string{}
	var all []*unstructured.Unstructured
	for _, user := range []string{"same-a", "same-b"} {
		consumer := newRigger(t, user)
		consumer.kubectl("create", "namespace", "other")
		for _, ns := range []string{namespace, "other"} {
			same := rig("same", map[string]any{"text": user + " " + ns})
			same.SetNamespace(ns)
			created, err := consumer.Resource(rigs).Namespace(ns).Create(t.Context(), same, metav1.CreateOptions{})
			must(t, err)
			all = append(all, created)
		}
	}
	for _, created := range all {
		text, _, _ := unstructured.NestedString(created.Object, "spec", "text")
		far := host.child(configMaps, created, "far")
		must(t, fieldIs(far, text, "data", "text"))
		if other, taken := names[far.GetName()]; taken {
			t.Errorf("%s and %s share %s", text, other, far.GetName())
		}
		names[far.GetName()] = text
	}
}

func TestObjectOfSomebodyElseOnTheHostIsNotTakenOver(t *testing.T) {
	consumer, host := newRigger(t, "hostconflict"), theHost(t)
	created := consumer.createRig("taken", nil)
	name := host.child(configMaps, created, "far").GetName()
	consumer.delete(rigs, "taken")
	eventually(t, "the name is free", func() error {
		if err := consumer.missing(rigs, "taken"); err != nil {
			return err
		}
		return host.missing(configMaps, name)
	})
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"text": "theirs"},
	}}
	_, err := host.in(configMaps).Create(t.Context(), theirs, metav1.CreateOptions{})
	must(t, err)
	_, err = consumer.in(rigs).Create(t.Context(), rig("taken", nil), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "host") {
		t.Fatalf("the answer is %v, want 409 that names plane and object", err)
	}
	must(t, consumer.missing(rigs, "taken"))
	must(t, consumer.missing(configMaps, "taken"))
	must(t, host.has(configMaps, name, "theirs", "data", "text"))
}

func TestBlueprintIsRefusedWhereKropMayNotComposeOnTheHost(t *testing.T) {
	provider := theOffers(t)
	role := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "any"}}
	_, err := provider.Resource(blueprints).Create(t.Context(), onHost("hostgrabs", "HostGrab", role), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("the answer is %v, want 403", err)
	}
	for _, word := range []string{"clusterroles.rbac.authorization.k8s.io", "create", "on the host", "manifests/host/20-child-kinds.yaml"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the answer lacks %q: %v", word, err)
		}
	}
}

func TestNamespaceOfAHostChildMustBeGiven(t *testing.T) {
	provider := theOffers(t)
	homeless := hostConfigMap()
	homeless["metadata"] = map[string]any{"name": "any"}
	_, err := provider.Resource(blueprints).Create(t.Context(), onHost("homeless", "Homeless", homeless), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.resources[0].template.metadata.namespace") {
		t.Fatalf("the answer is %v, want 422 for the namespace", err)
	}
}

// TestNewKindOfTheHostCanBeUsedAtOnce applies a CRD, waits for what kubectl can wait for, and uses it.
func TestNewKindOfTheHostCanBeUsedAtOnce(t *testing.T) {
	provider, host := theOffers(t), theHost(t)
	for _, name := range []string{"10-vm-crd.yaml", "20-krop-rights.yaml"} {
		host.kubectl("apply", "-f", checkout+"/examples/vm/host/"+name)
	}
	host.kubectl("wait", "--for=condition=Established", "crd/vms.compute.example.org")
	vm := map[string]any{
		"apiVersion": "compute.example.org/v1", "kind": "VM", "metadata": map[string]any{"name": "any", "namespace": namespace},
		"spec": map[string]any{"vpcId": "vpc-1", "cpus": "${schema.spec.size}"},
	}
	_, err := provider.Resource(blueprints).Create(t.Context(), onHost("crafts", "Craft", vm), metav1.CreateOptions{})
	must(t, err)
	must(t, provider.Resource(blueprints).Delete(t.Context(), "crafts", metav1.DeleteOptions{}))
}

func TestUnbindReclaimsChildrenOnTheHost(t *testing.T) {
	consumer, host := newRigger(t, "hostunbinds"), theHost(t)
	created := consumer.createRig("left", nil)
	consumer.kubectl("delete", "apibinding", "rigs")
	eventually(t, "nothing is left on the host", func() error { return nothingOf(created, host) })
}

// TestProvidersWithOneNameShareTheHost: another provider publishes a blueprint of the same name and kind, and
// takes it away again by force.
func TestProvidersWithOneNameShareTheHost(t *testing.T) {
	const others testbed.User = "otheroffers"
	theirs, mine, host := newUser(t, "theirs"), newRigger(t, "mine"), theHost(t)
	must(t, bed.AddUser(t.Context(), others))
	must(t, bed.PrepareProvider(t.Context(), others))
	must(t, publishRigs(t.Context(), others))
	must(t, bed.AllowBinding(t.Context(), others, theirs.user))
	theirs.bindRigs(others)
	kept, going := mine.createRig("same", map[string]any{"text": "mine"}), theirs.createRig("same", map[string]any{"text": "theirs"})
	must(t, fieldIs(host.child(configMaps, kept, "far"), "mine", "data", "text"))
	must(t, fieldIs(host.child(configMaps, going, "far"), "theirs", "data", "text"))

	other := as(t, others)
	other.kubectl("annotate", "rgd", "rigs", v1alpha1.AnnotationForceDelete+"=true")
	other.kubectl("delete", "rgd", "rigs", "--timeout=60s")
	eventually(t, "nothing of theirs is left", func() error { return nothingOf(going, host) })
	must(t, fieldIs(host.child(configMaps, kept, "far"), "mine", "data", "text"))
}

// TestOrphansOnTheHostAreSweptIfTheyAreThisKrops makes objects as krop would have for an instance that is gone.
func TestOrphansOnTheHostAreSweptIfTheyAreThisKrops(t *testing.T) {
	consumer, host := newRigger(t, "hostorphans"), theHost(t)
	like := host.child(configMaps, consumer.createRig("pattern", nil), "far")
	orphan := func(name string, change func(labels map[string]string)) {
		labels := like.GetLabels()
		labels[v1alpha1.LabelInstanceUID] = "no-such-instance"
		change(labels)
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		object.SetLabels(labels)
		_, err := host.in(configMaps).Create(t.Context(), object, metav1.CreateOptions{FieldManager: "krop-no-such-instance"})
		must(t, err)
	}
	orphan("of-another-krop", func(labels map[string]string) { labels[v1alpha1.LabelInstallation] = "another" })
	orphan("of-nobody", func(labels map[string]string) { delete(labels, v1alpha1.LabelConsumerCluster) })
	orphan("of-this-krop", func(map[string]string) {})
	eventually(t, "its own orphan goes", func() error { return host.missing(configMaps, "of-this-krop") })
	for _, name := range []string{"of-another-krop", "of-nobody", like.GetName()} {
		host.get(configMaps, name)
		if name != like.GetName() {
			host.delete(configMaps, name)
		}
	}
}
