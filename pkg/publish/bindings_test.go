package publish_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/test/testbed"
)

// follow tracks an export and waits until its bindings are known.
func (w *world) follow(t *testing.T, exports ...v1alpha1.ExportKey) *publish.Bindings {
	t.Helper()
	bindings, err := publish.NewBindings(w.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bindings.Close)
	for _, export := range exports {
		if err := bindings.Track(export); err != nil {
			t.Fatal(err)
		}
		if err := bindings.WaitKnown(t.Context(), export); err != nil {
			t.Fatal(err)
		}
	}
	return bindings
}

func TestBindingsAreFollowedByEvent(t *testing.T) {
	w := start(t)
	program := w.program(t, "follows", "Follow")
	claims := w.publishAll(t, program)
	consumer := w.cluster(t, testbed.Consumer)
	bindings := w.follow(t, program.Export)
	events := make(chan publish.BindingEvent, 100)
	defer bindings.Subscribe(func(event publish.BindingEvent) { events <- event })()

	if bound, known := bindings.Bound(t.Context(), program.Export, consumer); bound || !known {
		t.Errorf("before: bound %t, known %t, want false, true", bound, known)
	}
	w.bind(t, testbed.Consumer, program.Export.Name, claims)
	expect(t, events, publish.BindingAdded, consumer)
	if bound, known := bindings.Bound(t.Context(), program.Export, consumer); !bound || !known {
		t.Errorf("bound %t, known %t, want true, true", bound, known)
	}
	eventually(t, "the binding is in the cache", func() (bool, string) {
		return slices.Contains(bindings.Clusters(program.Export), consumer), ""
	})
	if accepted := bindings.Accepted(program.Export, consumer); !cmp.Equal(accepted, claims) {
		t.Errorf("accepted (-want +got):\n%s", cmp.Diff(claims, accepted))
	}

	rejected := bindingManifest(program.Export.Name, claims[1:])
	w.apply(t, testbed.Consumer, rejected)
	eventually(t, "the claim is known to be rejected", func() (bool, string) {
		accepted := bindings.Accepted(program.Export, consumer)
		return cmp.Equal(accepted, claims[1:]), cmp.Diff(claims[1:], accepted)
	})

	w.kubectl(t, testbed.Consumer, "delete", "apibinding", program.Export.Name)
	expect(t, events, publish.BindingRemoved, consumer)
	if bound, known := bindings.Bound(t.Context(), program.Export, consumer); bound || !known {
		t.Errorf("after: bound %t, known %t, want false, true", bound, known)
	}
}

// expect waits for an event of the type.
func expect(t *testing.T, events <-chan publish.BindingEvent, wanted publish.BindingEventType, cluster logicalcluster.Name) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event := <-events:
			if event.Cluster != cluster {
				t.Errorf("got an event of cluster %s", event.Cluster)
			}
			if event.Type == wanted {
				return
			}
		case <-timeout:
			t.Fatalf("no event %s within %s", wanted, patience)
		}
	}
}

func TestNothingIsKnownOfAnExportThatKropMayNotRead(t *testing.T) {
	w := start(t)
	export := v1alpha1.ExportKey{Cluster: w.cluster(t, testbed.Consumer2), Name: "foreign.example.org"}
	bindings, err := publish.NewBindings(w.config())
	if err != nil {
		t.Fatal(err)
	}
	defer bindings.Close()
	if err := bindings.Track(export); err != nil {
		t.Fatal(err)
	}
	if bound, known := bindings.Bound(t.Context(), export, w.cluster(t, testbed.Consumer)); bound || known {
		t.Errorf("bound %t, known %t, want false, false", bound, known)
	}
}

func TestAnExportHasNoEndpointUntilItIsBound(t *testing.T) {
	w := start(t)
	program := w.program(t, "endpoints", "Endpoint")
	claims := w.publishAll(t, program)
	endpoints, err := publish.NewEndpoints(w.config())
	if err != nil {
		t.Fatal(err)
	}
	var notReady *publish.NotReadyError
	if _, err := endpoints.URL(t.Context(), program.Export); !errors.As(err, &notReady) || !errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("got %v, want a NotReadyError", err)
	}
	w.bind(t, testbed.Consumer, program.Export.Name, claims)
	// kcp advertises krop's address; krop reaches kcp by its own.
	admin, err := w.bed.Config(testbed.Admin)
	if err != nil {
		t.Fatal(err)
	}
	host := admin.Host[:len(admin.Host)-len("/clusters/root")]
	want := host + "/services/apiexport/" + program.Export.String()
	eventually(t, "the endpoint is known", func() (bool, string) {
		got, err := endpoints.URL(t.Context(), program.Export)
		return got == want, got + " " + errorText(err)
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRoutingOfTheBlueprintKindIsProven(t *testing.T) {
	w := start(t)
	if err := w.publisher(t).ProveRouting(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRoutingOfABlueprintIsProvenThroughItsBinding(t *testing.T) {
	w := start(t)
	program := w.program(t, "routes", "Route")
	claims := w.publishAll(t, program)
	resource := schema.GroupVersionResource{Group: "demo.example.org", Version: "v1alpha1", Resource: "routes"}
	bindings := w.follow(t, program.Export)
	prover := publish.Prover{Bindings: bindings, Routes: &publish.Routes{}}

	if bound, err := prover.Routed(t.Context(), program.Export, resource); bound || err != nil {
		t.Errorf("before the first binding: %t, %v, want false and no error", bound, err)
	}
	w.bind(t, testbed.Consumer, program.Export.Name, claims)
	eventually(t, "the binding is in the cache", func() (bool, string) { return len(bindings.Clusters(program.Export)) > 0, "" })

	if bound, err := prover.Routed(t.Context(), program.Export, resource); !bound || !errors.Is(err, publish.ErrNotRouted) {
		t.Errorf("while nothing arrives: %t, %v, want true and ErrNotRouted", bound, err)
	}
	w.standIn.observe(prover.Routes)
	defer w.standIn.observe(nil)
	if bound, err := prover.Routed(t.Context(), program.Export, resource); !bound || err != nil {
		t.Errorf("when requests arrive: %t, %v, want true and no error", bound, err)
	}
}

func TestInstancesOfOneBlueprintAreVisibleToAnotherThatClaimsThem(t *testing.T) {
	w := start(t)
	inner := w.program(t, "inners", "Inner")
	innerClaims := w.publishAll(t, inner)
	outer := w.program(t, "outers", "Outer", node("inner", "demo.example.org", "inners"))
	outerClaims := w.publishAll(t, outer)
	w.bind(t, testbed.Consumer, inner.Export.Name, innerClaims)
	w.bind(t, testbed.Consumer, outer.Export.Name, outerClaims)
	bindings := w.follow(t, inner.Export, outer.Export)
	consumer := w.cluster(t, testbed.Consumer)

	if stamps := bindings.WithClaimLabels(consumer, schema.GroupResource{Group: "demo.example.org", Resource: "outers"}, nil); len(stamps) != 0 {
		t.Errorf("nobody claims outers, but the labels are %v", stamps)
	}
	// kcp stamps ConfigMaps itself: inner claims them, and so may exports of other tests.
	w.kubectl(t, testbed.Consumer, "create", "configmap", "stamped")
	defer w.kubectl(t, testbed.Consumer, "delete", "configmap", "stamped")
	var stamped map[string]string
	if err := json.Unmarshal([]byte(w.kubectl(t, testbed.Consumer, "get", "configmap", "stamped", "-o", "jsonpath={.metadata.labels}")), &stamped); err != nil {
		t.Fatal(err)
	}
	stamps := bindings.WithClaimLabels(consumer, schema.GroupResource{Resource: "configmaps"}, nil)
	if len(stamps) != 1 {
		t.Errorf("got labels %v, want one, for inner", stamps)
	}
	for key, value := range stamps {
		if stamped[key] != value {
			t.Errorf("got label %s=%s, but kcp stamps %v", key, value, stamped)
		}
	}
	if stamps := bindings.WithClaimLabels(consumer, schema.GroupResource{Group: "demo.example.org", Resource: "inners"}, nil); len(stamps) != 1 {
		t.Errorf("got labels %v, want one, for outer", stamps)
	}
}
