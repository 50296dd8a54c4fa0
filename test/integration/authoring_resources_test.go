package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stateOf says what is wrong unless the instance's row of a node has a state.
func (a actor) stateOf(resource resourceName, name, node, want string) error {
	found, err := a.in(resource).Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := row(found, node); got["state"] != want {
		return fmt.Errorf("%s of %s is %v (%v, %v), want %s", node, name, got["state"], got["waitingFor"], got["message"], want)
	}
	return nil
}

// TestAuthoringOfResources shows how resources depend on each other, and when they exist.
func TestAuthoringOfResources(t *testing.T) {
	_, consumer := theAuthors(t)
	made := consumer.makes(graphs, instance("Graph", "linked", map[string]any{}))

	t.Run("ids", func(t *testing.T) {
		if got := consumer.with(t).child(configMaps, made, "base").GetName(); got != "linked-base" {
			t.Errorf("the child of node base is %s", got)
		}
	})
	t.Run("dependencies are what expressions read", func(t *testing.T) {
		consumer := consumer.with(t)
		base := consumer.get(configMaps, "linked-base")
		must(t, consumer.has(configMaps, "linked-summary", string(base.GetUID()), "data", "base"))
		if level, base := row(made, "summary")["wave"], row(made, "base")["wave"]; level != int64(1) || base != nil {
			t.Errorf("summary is at level %v, base at %v, want 1 and none", level, base)
		}
	})
	t.Run("readyWhen", func(t *testing.T) { gates(t, consumer.with(t)) })
	t.Run("includeWhen", func(t *testing.T) { inclusions(t, consumer.with(t)) })
	t.Run("includeWhen reads other resources", func(t *testing.T) { signals(t, consumer.with(t)) })
	t.Run("children in other namespaces", func(t *testing.T) { neighbours(t, consumer.with(t)) })
}

// gates holds back what reads a resource until all its conditions hold, and nothing else.
func gates(t *testing.T, consumer actor) {
	held := consumer.makes(graphs, instance("Graph", "held", map[string]any{}))
	if got := row(held, "behind"); got["state"] != "Pending" || !strings.Contains(fmt.Sprint(got["waitingFor"]), "gate") {
		t.Errorf("what waits is %v, want it to wait for gate", got)
	}
	if got := row(held, "gate"); got["state"] != "Applied" {
		t.Errorf("what isn't ready is %v, want Applied", got)
	}
	must(t, consumer.missing(configMaps, "held-behind"))
	must(t, consumer.stateOf(graphs, "held", "summary", "Ready"))
	must(t, conditionIs(held, "Ready", "False"))

	consumer.patch(configMaps, "held-gate", `{"data":{"phase":"open"}}`)
	eventually(t, "what waited is written", func() error {
		if err := consumer.has(configMaps, "held-behind", "closed", "data", "state"); err != nil {
			return err
		}
		if err := consumer.has(graphs, "held", "open", "status", "phase"); err != nil {
			return err
		}
		return conditionIs(consumer.get(graphs, "held"), "Ready", "True")
	})
}

// inclusions takes a resource out and brings it back, together with what reads it.
func inclusions(t *testing.T, consumer actor) {
	consumer.makes(graphs, instance("Graph", "switched", map[string]any{}))
	must(t, consumer.has(graphs, "switched", "switch", "status", "guarded"))
	both := []string{"guarded", "follower"}
	for _, off := range []string{`{"spec":{"switch":false}}`, `{"spec":{"switch":true,"signal":"never"}}`} {
		consumer.patch(graphs, "switched", off)
		for _, node := range both {
			eventually(t, "what is excluded is deleted", func() error {
				if err := consumer.missing(configMaps, "switched-"+node); err != nil {
					return err
				}
				return consumer.stateOf(graphs, "switched", node, "Ignored")
			})
		}
		must(t, consumer.has(graphs, "switched", nil, "status", "guarded"))
		must(t, consumer.stateOf(graphs, "switched", "base", "Ready"))
	}
	consumer.patch(graphs, "switched", `{"spec":{"signal":"on"}}`)
	for _, node := range both {
		must(t, consumer.has(configMaps, "switched-"+node, "switch", "data", "by"))
	}
}

// signals has a resource depend on what another one says.
func signals(t *testing.T, consumer actor) {
	consumer.makes(graphs, instance("Graph", "signs", map[string]any{"signal": "off"}))
	must(t, consumer.missing(configMaps, "signs-signalled"))
	eventually(t, "it is excluded", func() error { return consumer.stateOf(graphs, "signs", "signalled", "Ignored") })
	consumer.patch(graphs, "signs", `{"spec":{"signal":"on"}}`)
	eventually(t, "it is there when it is signalled", func() error { return consumer.stateOf(graphs, "signs", "signalled", "Ready") })
	consumer.get(configMaps, "signs-signalled")
	consumer.patch(graphs, "signs", `{"spec":{"signal":"off"}}`)
	eventually(t, "it is gone when it isn't", func() error { return consumer.missing(configMaps, "signs-signalled") })
}

// neighbours puts a child into another namespace of the consumer's, and takes it away with the instance.
func neighbours(t *testing.T, consumer actor) {
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "next-door"},
	}}
	_, err := consumer.Resource(namespaces).Create(t.Context(), made, metav1.CreateOptions{})
	must(t, err)
	graph := consumer.makes(graphs, instance("Graph", "reaching", map[string]any{"elsewhere": "next-door"}))
	nextDoor := consumer.Resource(configMaps).Namespace("next-door")
	found, err := nextDoor.Get(t.Context(), "reaching", metav1.GetOptions{})
	must(t, err)
	if len(found.GetOwnerReferences()) != 0 {
		t.Errorf("a child in another namespace has owners, who can't be there: %v", found.GetOwnerReferences())
	}
	if got := row(graph, "elsewhere")["namespace"]; got != "next-door" {
		t.Errorf("the row says it is in %v", got)
	}
	consumer.delete(graphs, "reaching")
	eventually(t, "both are gone", func() error {
		left, err := nextDoor.List(t.Context(), nodeSelector(graph, ""))
		if err != nil || len(left.Items) > 0 {
			return fmt.Errorf("%d are left next door (%w)", len(left.Items), err)
		}
		return consumer.missing(graphs, "reaching")
	})
}

// TestAuthoringOfCollections shows what becomes of forEach.
func TestAuthoringOfCollections(t *testing.T) {
	_, consumer := theAuthors(t)
	made := consumer.makes(graphs, instance("Graph", "many", map[string]any{
		"regions": list("eu", "us"), "tiers": list("gold", "tin"),
		"items":  list(map[string]any{"name": "one", "copies": int64(2)}, map[string]any{"name": "two", "wanted": false}, map[string]any{"name": "three"}),
		"labels": map[string]any{"b": "2", "a": "unready"},
	}))
	are := func(t *testing.T, node string, want ...string) {
		t.Helper()
		if got := consumer.with(t).names(configMaps, made, node); !slices.Equal(got, want) {
			t.Errorf("children of %s are %v, want %v", node, got, want)
		}
	}
	t.Run("cartesian", func(t *testing.T) {
		are(t, "products", "many-eu-gold", "many-eu-tin", "many-us-gold", "many-us-tin")
		must(t, fieldIs(made, list("many-eu-gold", "many-eu-tin", "many-us-gold", "many-us-tin"), "status", "products"))
		must(t, consumer.with(t).has(configMaps, "many-us-tin", map[string]any{"region": "us", "tier": "tin", "of": "many"}, "data"))
	})
	t.Run("read by others", func(t *testing.T) {
		must(t, fieldIs(made, int64(4), "status", "count"))
		must(t, consumer.with(t).has(configMaps, "many-summary", "many-eu-gold,many-eu-tin,many-us-gold,many-us-tin", "data", "products"))
	})
	t.Run("chained", func(t *testing.T) {
		are(t, "mirrors", "m-many-eu-gold", "m-many-eu-tin", "m-many-us-gold", "m-many-us-tin")
		must(t, consumer.with(t).has(configMaps, "m-many-us-gold", "us", "data", "region"))
	})
	t.Run("filtered, flattened and numbered", func(t *testing.T) {
		are(t, "copies", "many-one-0", "many-one-1", "many-three-0")
	})
	t.Run("over the keys of a map", func(t *testing.T) { are(t, "entries", "many-entry-a", "many-entry-b") })
	t.Run("readyWhen of each", func(t *testing.T) {
		if got := row(made, "entries"); got["state"] != "Applied" {
			t.Errorf("a collection with an element that isn't ready is %v", got)
		}
		consumer := consumer.with(t)
		consumer.patch(graphs, "many", `{"spec":{"labels":{"a":"1"}}}`)
		must(t, consumer.stateOf(graphs, "many", "entries", "Ready"))
	})
	t.Run("ten axes", func(t *testing.T) {
		are(t, "axes", "many-eubcdefghi0", "many-eubcdefghi1", "many-usbcdefghi0", "many-usbcdefghi1")
	})
	t.Run("a list that shrinks", func(t *testing.T) {
		consumer := consumer.with(t)
		consumer.patch(graphs, "many", `{"spec":{"tiers":["gold"],"items":[]}}`)
		for _, name := range []string{"many-eu-tin", "many-us-tin", "m-many-eu-tin", "m-many-us-tin", "many-one-1", "many-three-0"} {
			eventually(t, name+" is gone", func() error { return consumer.missing(configMaps, name) })
		}
		are(t, "products", "many-eu-gold", "many-us-gold")
		eventually(t, "what reads the collection follows", func() error {
			return consumer.has(configMaps, "many-summary", "many-eu-gold,many-us-gold", "data", "products")
		})
	})
	t.Run("a list that grows", func(t *testing.T) {
		consumer := consumer.with(t)
		consumer.patch(graphs, "many", `{"spec":{"regions":["eu","us","asia"]}}`)
		eventually(t, "the new ones are there", func() error { return consumer.has(configMaps, "m-many-asia-gold", "asia", "data", "region") })
	})
	t.Run("an empty list", func(t *testing.T) {
		consumer := consumer.with(t)
		consumer.patch(graphs, "many", `{"spec":{"regions":[]}}`)
		eventually(t, "all are gone, and what reads them goes on", func() error {
			if err := consumer.has(configMaps, "many-summary", "", "data", "products"); err != nil {
				return err
			}
			if left := consumer.names(configMaps, made, "products"); len(left) > 0 {
				return fmt.Errorf("%v are left", left)
			}
			return consumer.has(graphs, "many", int64(0), "status", "count")
		})
		are(t, "mirrors")
	})
	t.Run("includeWhen is for all of it", func(t *testing.T) {
		consumer := consumer.with(t)
		consumer.patch(graphs, "many", `{"spec":{"regions":["eu"]}}`)
		consumer.get(configMaps, "many-eu-gold")
		consumer.patch(graphs, "many", `{"spec":{"signal":"none"}}`)
		for _, node := range []string{"products", "mirrors", "summary"} {
			eventually(t, node+" is excluded", func() error { return consumer.stateOf(graphs, "many", node, "Ignored") })
		}
		must(t, consumer.missing(configMaps, "many-eu-gold"))
	})
	t.Run("two elements of one name", func(t *testing.T) {
		twice := instance("Graph", "twice", map[string]any{"regions": list("eu", "eu"), "tiers": list("gold")})
		_, err := consumer.with(t).tries(graphs, twice)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "products") {
			t.Errorf("two children of one name are answered by %v, want a refusal that names products", err)
		}
	})
}
