package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/test/testbed"
)

var readers = authored("readers")

// Consumers of the offering that reads. Two are enough for all tests, which use names of their own.
const reads, readsToo testbed.User = "reads", "readstoo"

// theReaders are the provider and the consumers.
func theReaders(t *testing.T) (provider, consumer, another actor) {
	t.Helper()
	provider = theOffers(t)
	must(t, readersReady())
	return provider, as(t, reads), as(t, readsToo)
}

var readersReady = sync.OnceValue(func() error {
	ctx := context.Background()
	if _, err := bed.Kubectl(offers).Run(ctx, "apply", "-f", testdata("readers.yaml")); err != nil {
		return err
	}
	for _, consumer := range []testbed.User{reads, readsToo} {
		if err := bed.AddUser(ctx, consumer); err != nil {
			return err
		}
		if err := bed.AllowBinding(ctx, offers, consumer); err != nil {
			return err
		}
		if err := bindOfferings(ctx, consumer, "readers"); err != nil {
			return err
		}
	}
	return nil
})

// writes creates an object that isn't krop's.
func (a actor) writes(resource resourceName, kind, name string, labels map[string]string, data map[string]any) {
	a.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "data": data}}
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(labels)
	_, err := a.in(resource).Create(a.t.Context(), object, metav1.CreateOptions{})
	must(a.t, err)
}

func (a actor) awaitsField(resource resourceName, name string, want any, path ...string) {
	a.t.Helper()
	eventually(a.t, fmt.Sprintf("%s %s gets %v", resource.Resource, name, want), func() error {
		return a.has(resource, name, want, path...)
	})
}

func (a actor) awaitsReady(name, want string) {
	a.t.Helper()
	eventually(a.t, name+" is ready: "+want, func() error {
		return conditionIs(a.get(readers, name), "Ready", want)
	})
}

// TestWhatAnInstanceReadsByNameIsFollowed runs with the resync at an hour: each step is the effect of an event.
func TestWhatAnInstanceReadsByNameIsFollowed(t *testing.T) {
	provider, consumer, _ := theReaders(t)
	consumer.makes(readers, instance("Reader", "follows", map[string]any{"settings": "follows", "prices": "follows"}))
	must(t, consumer.has(configMaps, "follows-plain", "follows", "data", "for"))
	must(t, consumer.missing(configMaps, "follows-valued"))
	must(t, consumer.missing(configMaps, "follows-priced"))
	must(t, conditionIs(consumer.get(readers, "follows"), "Ready", "False"))

	consumer.writes(configMaps, "ConfigMap", "follows", nil, map[string]any{"value": "v1"})
	consumer.awaitsField(configMaps, "follows-valued", "v1", "data", "value")
	consumer.awaitsField(readers, "follows", "v1", "status", "value")
	provider.writes(configMaps, "ConfigMap", "follows", nil, map[string]any{"price": "10"})
	consumer.awaitsField(configMaps, "follows-priced", "10", "data", "price")
	consumer.awaitsReady("follows", "True")

	consumer.patch(configMaps, "follows", `{"data":{"value":"v2"}}`)
	consumer.awaitsField(configMaps, "follows-valued", "v2", "data", "value")
	consumer.awaitsField(readers, "follows", "v2", "status", "value")
	provider.patch(configMaps, "follows", `{"data":{"price":"12"}}`)
	consumer.awaitsField(configMaps, "follows-priced", "12", "data", "price")

	isUntouched(t, consumer.get(configMaps, "follows"))
}

func TestWhatIsReadOnTheHostIsFollowed(t *testing.T) {
	_, consumer, _ := theReaders(t)
	host := as(t, testbed.Host)
	consumer.makes(readers, instance("Reader", "hosted", map[string]any{"settings": "none", "image": "hosted"}))
	must(t, consumer.missing(configMaps, "hosted-imaged"))
	host.writes(configMaps, "ConfigMap", "hosted", nil, map[string]any{"digest": "d1"})
	consumer.awaitsField(configMaps, "hosted-imaged", "d1", "data", "image")
	host.patch(configMaps, "hosted", `{"data":{"digest":"d2"}}`)
	consumer.awaitsField(configMaps, "hosted-imaged", "d2", "data", "image")
	isUntouched(t, host.get(configMaps, "hosted"))
}

// isUntouched checks that krop has left no trace on an object.
func isUntouched(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	marks := append(slices.Collect(maps.Keys(object.GetLabels())), slices.Collect(maps.Keys(object.GetAnnotations()))...)
	for _, managed := range object.GetManagedFields() {
		marks = append(marks, managed.Manager)
	}
	for _, mark := range append(marks, object.GetFinalizers()...) {
		if strings.HasPrefix(mark, "krop") {
			t.Errorf("%s, which is only read, has %s", object.GetName(), mark)
		}
	}
	if owners := object.GetOwnerReferences(); len(owners) != 0 {
		t.Errorf("%s, which is only read, is owned by %v", object.GetName(), owners)
	}
}

// TestWhatIsReadGoesAndNothingIsPruned deletes what a child is made of: the child stays as it is, as do all others.
func TestWhatIsReadGoesAndNothingIsPruned(t *testing.T) {
	provider, consumer, _ := theReaders(t)
	provider.writes(configMaps, "ConfigMap", "loses", nil, map[string]any{"price": "10"})
	consumer.writes(configMaps, "ConfigMap", "loses", nil, map[string]any{"value": "v1"})
	consumer.makes(readers, instance("Reader", "loses", map[string]any{"settings": "loses", "prices": "loses", "tier": "gold"}))
	consumer.awaitsReady("loses", "True")
	valued, plain := consumer.get(configMaps, "loses-valued"), consumer.get(configMaps, "loses-plain")

	consumer.delete(configMaps, "loses")
	consumer.awaitsReady("loses", "False")
	if got := row(consumer.get(readers, "loses"), "valued")["state"]; got != "Pending" {
		t.Errorf("what was made of it is %v, want Pending", got)
	}
	provider.patch(configMaps, "loses", `{"data":{"price":"12"}}`)
	consumer.awaitsField(configMaps, "loses-priced", "12", "data", "price") // a later pass has gone by
	for _, before := range []*unstructured.Unstructured{valued, plain} {
		after := consumer.get(configMaps, before.GetName())
		if after.GetUID() != before.GetUID() || after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("%s was written or made anew", before.GetName())
		}
	}

	consumer.writes(configMaps, "ConfigMap", "loses", nil, map[string]any{"value": "v2"})
	consumer.awaitsField(configMaps, "loses-valued", "v2", "data", "value")
	consumer.awaitsReady("loses", "True")
	if consumer.get(configMaps, "loses-valued").GetUID() != valued.GetUID() {
		t.Error("the child is another one")
	}
}

func TestWhatASelectorPicksIsFollowed(t *testing.T) {
	_, consumer, _ := theReaders(t)
	consumer.makes(readers, instance("Reader", "selects", map[string]any{"settings": "none", "tier": "gold"}))
	listed := func(keys string) {
		t.Helper()
		consumer.awaitsField(configMaps, "selects-listed", keys, "data", "keys")
	}
	gold := map[string]string{"tier": "gold"}
	listed("")
	consumer.writes(secrets, "Secret", "one", gold, nil)
	listed("one")
	consumer.writes(secrets, "Secret", "two", nil, nil)
	consumer.patch(secrets, "two", `{"metadata":{"labels":{"tier":"gold"}}}`)
	listed("one,two")
	consumer.patch(secrets, "one", `{"metadata":{"labels":{"tier":"tin"}}}`)
	listed("two")
	consumer.patch(readers, "selects", `{"spec":{"tier":"tin"}}`)
	listed("one")
	consumer.patch(secrets, "two", `{"metadata":{"labels":{"tier":"tin"}}}`)
	listed("one,two")
	consumer.delete(secrets, "one")
	listed("two")
	consumer.awaitsField(readers, "selects", []any{"two"}, "status", "keys")
}

// TestAChainOfInstancesFollowsItsFirstLink has an instance read the child of another, which reads too.
func TestAChainOfInstancesFollowsItsFirstLink(t *testing.T) {
	_, consumer, _ := theReaders(t)
	consumer.makes(readers, instance("Reader", "second", map[string]any{"settings": "first-valued"}))
	consumer.makes(readers, instance("Reader", "first", map[string]any{"settings": "links"}))
	consumer.writes(configMaps, "ConfigMap", "links", nil, map[string]any{"value": "v1"})
	consumer.awaitsField(readers, "second", "v1", "status", "value")
	consumer.patch(configMaps, "links", `{"data":{"value":"v2"}}`)
	consumer.awaitsField(configMaps, "second-valued", "v2", "data", "value")
}

// TestConsumersReadTheirOwn has two consumers read what has one name in both workspaces.
func TestConsumersReadTheirOwn(t *testing.T) {
	_, here, there := theReaders(t)
	for _, consumer := range []actor{here, there} {
		consumer.makes(readers, instance("Reader", "twin", map[string]any{"settings": "twin"}))
	}
	there.writes(configMaps, "ConfigMap", "twin", nil, map[string]any{"value": "theirs"})
	there.awaitsField(configMaps, "twin-valued", "theirs", "data", "value")
	must(t, here.missing(configMaps, "twin-valued"))
	here.writes(configMaps, "ConfigMap", "twin", nil, map[string]any{"value": "ours"})
	here.awaitsField(configMaps, "twin-valued", "ours", "data", "value")
	must(t, there.has(configMaps, "twin-valued", "theirs", "data", "value"))
}
