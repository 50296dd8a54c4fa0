package blueprint_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
)

// rights remembers what it was asked, and denies part of it.
type rights struct {
	asked map[v1alpha1.Target][]plane.Right
	deny  func(v1alpha1.Target, plane.Right) bool
	err   error
}

func (r *rights) Denied(_ context.Context, target v1alpha1.Target, _ v1alpha1.ExportKey, needed []plane.Right) (denied []plane.Right, err error) {
	if r.asked == nil {
		r.asked = map[v1alpha1.Target][]plane.Right{}
	}
	r.asked[target] = needed
	for _, right := range needed {
		if r.deny != nil && r.deny(target, right) {
			denied = append(denied, right)
		}
	}
	return denied, r.err
}

func node(target v1alpha1.Target, resource string, external bool) engine.Node {
	return engine.Node{
		ID: v1alpha1.NodeID(string(target) + resource), Target: target, External: external,
		GVR: schema.GroupVersionResource{Version: "v1", Resource: resource},
	}
}

func check(granted *rights, nodes ...engine.Node) error {
	offering := &blueprint.Offering{Rights: granted}
	return offering.CheckRights(context.Background(), &engine.Program{Blueprint: "widgets", Export: export, Nodes: nodes}, func(id v1alpha1.NodeID) *field.Path {
		return field.NewPath("spec", "resources").Key(string(id))
	})
}

func TestRightsAreAskedForOnThePlaneThatTheyAreNeededOn(t *testing.T) {
	granted := &rights{}
	err := check(granted,
		node(v1alpha1.TargetHost, "secrets", true), node(v1alpha1.TargetHost, "configmaps", true),
		node(v1alpha1.TargetHost, "configmaps", false), node(v1alpha1.TargetConsumer, "secrets", false))
	if err != nil {
		t.Fatal(err)
	}
	if _, asked := granted.asked[v1alpha1.TargetProvider]; asked || len(granted.asked) != 1 {
		t.Errorf("asked for %v", granted.asked)
	}
	needed := granted.asked[v1alpha1.TargetHost]
	if len(needed) != 2 || needed[0].Resource != "configmaps" || needed[1].Resource != "secrets" {
		t.Fatalf("asked for %v", needed)
	}
	if !slices.Equal(needed[0].Verbs, plane.ComposeVerbs) || !slices.Equal(needed[1].Verbs, plane.ReadVerbs) {
		t.Errorf("asked for %v: what is only read needs reading only", needed)
	}
}

func TestLackingRightsAreNamedWithPlaneAndManifest(t *testing.T) {
	denying := &rights{deny: func(_ v1alpha1.Target, right plane.Right) bool { return right.Resource == "secrets" }}
	err := check(denying,
		node(v1alpha1.TargetHost, "secrets", true), node(v1alpha1.TargetHost, "configmaps", false), node(v1alpha1.TargetProvider, "secrets", false))
	var refusal *blueprint.UncomposableError
	if !errors.As(err, &refusal) || !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want an UncomposableError", err)
	}
	if len(refusal.Denied) != 2 || refusal.Denied[0].Target != v1alpha1.TargetProvider || len(refusal.Denied[0].Verbs) != len(plane.ComposeVerbs) {
		t.Errorf("denied: %+v", refusal.Denied)
	}
	for _, part := range []string{"get, list, watch secrets on the host", "manifests/host/20-child-kinds.yaml", "create, update, patch, delete secrets in the workspace provider1", "manifests/provider/40-child-kinds.yaml"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if causes := refusal.Status().Details.Causes; len(causes) != 2 || causes[1].Field != "spec.resources[hostsecrets]" || !strings.Contains(causes[1].Message, "host") {
		t.Errorf("causes: %+v", causes)
	}
}

func TestRightsThatCannotBeFoundOutAreNoRefusal(t *testing.T) {
	away := &rights{err: plane.ErrNotReachable}
	if err := check(away, node(v1alpha1.TargetHost, "secrets", false)); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "host") {
		t.Errorf("got %v, want 503 that names the host", err)
	}
}
