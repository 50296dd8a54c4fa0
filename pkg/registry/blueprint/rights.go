package blueprint

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Rights knows what krop's user may do on planes. *plane.Set is one.
type Rights interface {
	// Denied are those of the rights that krop's user lacks.
	Denied(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, rights []plane.Right) ([]plane.Right, error)
}

var _ Rights = &plane.Set{}

// grantedPlanes are those whose owners grant krop's user rights, kind by kind. Consumers accept claims instead.
var grantedPlanes = []v1alpha1.Target{v1alpha1.TargetProvider, v1alpha1.TargetHost}

// UncomposableError says that krop's user may not do on planes what the blueprint asks of it there. It is a
// Status with code 403: without it, consumers would be refused for what the provider or the host's operator has to
// repair.
type UncomposableError struct {
	// Cluster is the blueprint's workspace.
	Cluster logicalcluster.Name
	// Denied are the rights that krop's user lacks; at least one.
	Denied []DeniedRight
}

// DeniedRight is one that krop's user lacks on a plane.
type DeniedRight struct {
	plane.Right
	Target v1alpha1.Target
	// Field is the first resource of the blueprint that needs it.
	Field *field.Path
}

// Error names plane, resources and verbs, and what to apply.
func (e *UncomposableError) Error() string {
	var sentences []string
	for _, target := range grantedPlanes {
		var lacking []DeniedRight
		for _, right := range e.Denied {
			if right.Target == target {
				lacking = append(lacking, right)
			}
		}
		if len(lacking) > 0 {
			sentences = append(sentences, e.denial(target, lacking...))
		}
	}
	return strings.Join(sentences, "; ")
}

func (e *UncomposableError) denial(target v1alpha1.Target, rights ...DeniedRight) string {
	lacking := make([]string, 0, len(rights))
	for _, right := range rights {
		lacking = append(lacking, strings.Join(right.Verbs, ", ")+" "+right.String())
	}
	where, manifest := fmt.Sprintf("in the workspace %s", e.Cluster), path.Join(manifests.Folder, manifests.ChildKinds)
	if target == v1alpha1.TargetHost {
		where, manifest = "on the host", path.Join(manifests.Folder, manifests.HostKinds)
	}
	return fmt.Sprintf("krop's user may not %s %s, as the blueprint's resources with target %s need; "+
		"apply a ClusterRole and a ClusterRoleBinding there that grant it, as %s does for Secrets",
		strings.Join(lacking, "; nor "), where, target, manifest)
}

// Status is what a client sees: a cause for each right, at the first resource that needs it.
func (e *UncomposableError) Status() metav1.Status {
	details := &metav1.StatusDetails{Group: v1alpha1.GroupVersion.Group, Kind: "resourcegraphdefinitions"}
	for _, right := range e.Denied {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeForbidden, Field: right.Field.String(), Message: e.denial(right.Target, right),
		})
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: e.Error(), Details: details,
	}
}

// CheckRights fails with UncomposableError unless krop's user may do all that the program asks of it. The error
// says where in the blueprint, by at.
func (o *Offering) CheckRights(ctx context.Context, program *engine.Program, at func(v1alpha1.NodeID) *field.Path) error {
	refusal := &UncomposableError{Cluster: program.Export.Cluster}
	for _, target := range grantedPlanes {
		needed := neededRights(program, target)
		if len(needed) == 0 {
			continue
		}
		denied, err := o.Rights.Denied(ctx, target, program.Export, needed)
		if err != nil {
			return registry.Unavailable(fmt.Sprintf("what krop's user may do on the %s plane can't be found out now", target), err)
		}
		for _, right := range denied {
			refusal.Denied = append(refusal.Denied, DeniedRight{Right: right, Target: target, Field: at(firstNeeding(program, target, right))})
		}
	}
	if len(refusal.Denied) > 0 {
		return refusal
	}
	return nil
}

// firstNeeding is the first resource, in the order of the program, that needs a right.
func firstNeeding(program *engine.Program, target v1alpha1.Target, right plane.Right) v1alpha1.NodeID {
	i := slices.IndexFunc(program.Nodes, func(node engine.Node) bool {
		return node.Target == target && node.GVR.GroupResource() == right.GroupResource
	})
	return program.Nodes[i].ID
}

// neededRights is what the program needs on a plane, by resource; sorted.
func neededRights(program *engine.Program, target v1alpha1.Target) []plane.Right {
	wanted := map[schema.GroupResource][]string{}
	for _, node := range program.Nodes {
		resource := node.GVR.GroupResource()
		switch {
		case node.Target != target:
		case !node.External:
			wanted[resource] = plane.ComposeVerbs
		case wanted[resource] == nil:
			wanted[resource] = plane.ReadVerbs
		}
	}
	rights := make([]plane.Right, 0, len(wanted))
	for resource, verbs := range wanted {
		rights = append(rights, plane.Right{GroupResource: resource, Verbs: verbs})
	}
	slices.SortFunc(rights, func(a, b plane.Right) int { return strings.Compare(a.String(), b.String()) })
	return rights
}
