package publish

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// Verbs of claims. kcp grants the plain intersection of what the export asks for and what the binding
// accepts, in which a "*" on one side only grants nothing. So what is written is claimed both ways: consumers
// may accept "*", or spell the verbs out.
var (
	writeVerbs = append([]string{"*"}, plane.ComposeVerbs...)
	readVerbs  = plane.ReadVerbs
	// Instances of namespaced kinds live in namespaces that must exist and must not be terminating.
	namespaceVerbs = []string{"get"}
	// Users who don't come through kcp are authorized by asking the workspace. kcp grants nothing that the
	// export doesn't ask for, so every export does; consumers without such users need not accept it.
	reviewVerbs = []string{"create"}
)

var (
	namespaces    = schema.GroupResource{Resource: "namespaces"}
	accessReviews = schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}
)

// Claims derives what consumers are asked to accept: everything for what the blueprint writes into their
// workspaces, reading for what it only reads there, and reading of namespaces if instances live in them; and, for
// consumers who want it, access reviews, by which users may come directly. Each claim's identity is resolved from what
// the blueprint's workspace has bound or exports. They are ordered by group and resource.
//
// A resource that can't be claimed is a field error at the node, whose place in the blueprint is what at says. The
// last result is a failure to find out.
func (p *Publisher) Claims(ctx context.Context, program *engine.Program, at func(v1alpha1.NodeID) *field.Path) ([]v1alpha1.PermissionClaim, field.ErrorList, error) {
	wanted := wantedVerbs(program)
	var known identities
	if slices.ContainsFunc(program.Nodes, needsIdentity(wanted)) {
		w, err := p.kcp.workspace(program.Export.Cluster.Path())
		if err != nil {
			return nil, nil, err
		}
		if known, err = identitiesIn(ctx, w); err != nil {
			return nil, nil, err
		}
	}
	errs := unclaimable(program, wanted, known, at)
	if len(errs) > 0 {
		return nil, errs, nil
	}
	return claimsFor(wanted, known), nil, nil
}

// wantedVerbs says what is to be done in consumers' workspaces, apart from the blueprint's own kind, which
// the export offers anyway.
func wantedVerbs(program *engine.Program) map[schema.GroupResource][]string {
	own := schema.GroupResource{Group: program.CRD.Spec.Group, Resource: program.CRD.Spec.Names.Plural}
	wanted := map[schema.GroupResource][]string{}
	for _, node := range program.Nodes {
		resource := node.GVR.GroupResource()
		switch {
		case node.Target != v1alpha1.TargetConsumer || resource == own:
		case node.External:
			wanted[resource] = union(wanted[resource], readVerbs)
		default:
			wanted[resource] = union(wanted[resource], writeVerbs)
		}
	}
	if program.CRD.Spec.Scope == apiextensionsv1.NamespaceScoped {
		wanted[namespaces] = union(wanted[namespaces], namespaceVerbs)
	}
	wanted[accessReviews] = union(wanted[accessReviews], reviewVerbs)
	return wanted
}

// union keeps the order of writeVerbs, which has all verbs that are claimed.
func union(a, b []string) []string {
	var both []string
	for _, verb := range writeVerbs {
		if slices.Contains(a, verb) || slices.Contains(b, verb) {
			both = append(both, verb)
		}
	}
	return both
}

func needsIdentity(wanted map[schema.GroupResource][]string) func(engine.Node) bool {
	return func(node engine.Node) bool {
		resource := node.GVR.GroupResource()
		return wanted[resource] != nil && !builtin[resource]
	}
}

// unclaimable has an error for each node in a consumer's workspace that no claim can reach.
func unclaimable(program *engine.Program, wanted map[schema.GroupResource][]string, known identities, at func(v1alpha1.NodeID) *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, node := range program.Nodes {
		resource := node.GVR.GroupResource()
		if node.Target != v1alpha1.TargetConsumer || wanted[resource] == nil {
			continue
		}
		switch {
		case resource == apiBindings && !node.External:
			errs = append(errs, field.Forbidden(at(node.ID), fmt.Sprintf("resource %q: it would need a claim to write apibindings, "+
				"with which all other claims could be accepted in the consumer's name", node.ID)))
		case !builtin[resource] && known[resource] == "":
			errs = append(errs, field.Invalid(at(node.ID), resource.String(), fmt.Sprintf("resource %q: it is to be in the consumer's workspace, "+
				"but no claim can name it: expected a built-in type, or an API that this workspace has bound or exports. "+
				"A CustomResourceDefinition of this workspace can't be claimed", node.ID)))
		}
	}
	return errs
}

func claimsFor(wanted map[schema.GroupResource][]string, known identities) []v1alpha1.PermissionClaim {
	claims := make([]v1alpha1.PermissionClaim, 0, len(wanted))
	for resource, verbs := range wanted {
		claim := v1alpha1.PermissionClaim{Group: resource.Group, Resource: resource.Resource, Verbs: verbs}
		if !builtin[resource] {
			claim.IdentityHash = known[resource]
		}
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b v1alpha1.PermissionClaim) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return claims
}
