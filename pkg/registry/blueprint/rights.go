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
	// Denied are the rights that krop's user lacks, by plane; none is empty.
	Denied map[v1alpha1.Target][]plane.Right
}

// Error names plane, resources and verbs, and what to apply.
func (e *UncomposableError) Error() string {
	var sentences []string
	for _, target := range grantedPlanes {
		if rights := e.Denied[target]; len(rights) > 0 {
			sentences = append(sentences, e.denial(target, rights))
		}
	}
	return strings.Join(sentences, "; ")
}

func (e *UncomposableError) denial(target v1alpha1.Target, rights []plane.Right) string {
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

// Status is what a client sees.
func (e *UncomposableError) Status() metav1.Status {
	details := &metav1.StatusDetails{Group: v1alpha1.GroupVersion.Group, Kind: "resourcegraphdefinitions"}
	for _, target := range grantedPlanes {
		for _, right := range e.Denied[target] {
			details.Causes = append(details.Causes, metav1.StatusCause{
				Type: metav1.CauseTypeForbidden, Field: right.String(),
				Message: fmt.Sprintf("missing verbs on the %s plane: %s", target, strings.Join(right.Verbs, ", ")),
			})
		}
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: e.Error(), Details: details,
	}
}

// checkRights fails with UncomposableError unless krop's user may do all that the program asks of it.
func (o *Offering) checkRights(ctx context.Context, program *engine.Program) error {
	refusal := &UncomposableError{Cluster: program.Export.Cluster, Denied: map[v1alpha1.Target][]plane.Right{}}
	for _, target := range grantedPlanes {
		needed := neededRights(program, target)
		if len(needed) == 0 {
			continue
		}
		denied, err := o.Rights.Denied(ctx, target, program.Export, needed)
		if err != nil {
			return registry.Unavailable(fmt.Sprintf("what krop's user may do on the %s plane can't be found out now", target), err)
		}
		if len(denied) > 0 {
			refusal.Denied[target] = denied
		}
	}
	if len(refusal.Denied) > 0 {
		return refusal
	}
	return nil
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
