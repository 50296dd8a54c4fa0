package publish_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/test/testbed"
)

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"*", "get", "list", "watch", "create", "update", "patch", "delete"}
)

// directAccess is what every export asks for, and no consumer has to accept.
var directAccess = v1alpha1.PermissionClaim{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"}}

func node(id, group, resource string, change ...func(*engine.Node)) engine.Node {
	n := engine.Node{
		ID: v1alpha1.NodeID(id), Target: v1alpha1.TargetConsumer,
		GVR: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
	}
	for _, each := range change {
		each(&n)
	}
	return n
}

func external(n *engine.Node)   { n.External = true }
func inProvider(n *engine.Node) { n.Target = v1alpha1.TargetProvider }

func TestClaimsAskForWhatIsWrittenAndRead(t *testing.T) {
	w := start(t)
	program := w.program(t, "claimers", "Claimer",
		node("secret", "", "secrets", external),
		node("config", "", "configmaps", external),
		node("written", "", "configmaps"),
		node("role", "rbac.authorization.k8s.io", "roles"),
		node("database", "databases.example.org", "databases", inProvider),
		node("self", "demo.example.org", "claimers"),
	)
	claims, errs, err := w.publisher(t).Claims(t.Context(), program, place)
	if err != nil || len(errs) > 0 {
		t.Fatalf("got %v, %v", errs, err)
	}
	want := []v1alpha1.PermissionClaim{
		{Resource: "configmaps", Verbs: write},
		{Resource: "namespaces", Verbs: []string{"get"}},
		{Resource: "secrets", Verbs: read},
		directAccess,
		{Group: "rbac.authorization.k8s.io", Resource: "roles", Verbs: write},
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestClaimsCarryTheIdentityThatTheProviderKnows(t *testing.T) {
	w := start(t)
	base := w.program(t, "bases", "Base")
	w.publishAll(t, base)
	exported, err := w.publisher(t).IdentityHash(t.Context(), base.Export)
	if err != nil {
		t.Fatal(err)
	}
	bound := w.kubectl(t, testbed.Provider, "get", "apibinding", w.home.Name, "-o", "jsonpath={.status.boundResources[0].schema.identityHash}")
	program := w.program(t, "builders", "Builder",
		node("base", "demo.example.org", "bases"),
		node("blueprint", "krop.opendefense.cloud", "resourcegraphdefinitions", external),
	)
	claims := w.publishAll(t, program) // kcp would refuse an export that lacks them
	want := []v1alpha1.PermissionClaim{
		{Resource: "namespaces", Verbs: []string{"get"}},
		directAccess,
		{Group: "demo.example.org", Resource: "bases", IdentityHash: exported, Verbs: write},
		{Group: "krop.opendefense.cloud", Resource: "resourcegraphdefinitions", IdentityHash: bound, Verbs: read},
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeClaimedIsAnErrorAtTheResource(t *testing.T) {
	w := start(t)
	program := w.program(t, "hopefuls", "Hopeful",
		node("slice", "endpoints.krop.opendefense.cloud", "blueprintendpointslices"), // a CRD of the workspace
		node("unknown", "example.org", "unknowns", external),
		node("binding", "apis.kcp.io", "apibindings"),
		node("fine", "", "configmaps"),
	)
	claims, errs, err := w.publisher(t).Claims(t.Context(), program, place)
	if err != nil || claims != nil {
		t.Fatalf("got %v, %v", claims, err)
	}
	type problem struct {
		Field string
		Type  field.ErrorType
	}
	var got []problem
	for _, each := range errs {
		got = append(got, problem{each.Field, each.Type})
		if !strings.Contains(each.Detail, `resource "`) {
			t.Errorf("the resource is not named as the compiler names it: %s", each.Detail)
		}
	}
	want := []problem{
		{"spec.resources[slice]", field.ErrorTypeInvalid},
		{"spec.resources[unknown]", field.ErrorTypeInvalid},
		{"spec.resources[binding]", field.ErrorTypeForbidden},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
