package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Shown says whether kcp shows the export all objects of a resource that a workspace lets it see: it puts labels on them,
// one after the other, once a claim is accepted, and takes them off once it isn't. Meanwhile a list is
// answered, and lacks some. shown is empty if it may; otherwise it is another one after each change of the binding, so that
// a list which was read between two equal answers lacks nothing. It is read from kcp each time: what the watch has seen may be older than a list.
func (b *Bindings) Shown(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name, resource schema.GroupResource) (shown string, err error) {
	b.mu.RLock()
	f, tracked := b.exports[export]
	b.mu.RUnlock()
	if !tracked {
		return "", errNotTracked(export)
	}
	bindings, err := b.kcp.bindings(export, cluster.Path())
	if err != nil {
		return "", err
	}
	list, err := bindings.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the binding to %s: %w", export, err)
	}
	for i := range list.Items {
		if binding := &list.Items[i]; shows(binding, resource) && b.isCertain(f, binding, resource) {
			return fmt.Sprintf("%s/%d", binding.UID, binding.Generation), nil
		}
	}
	return "", nil
}

// shows says whether kcp has labelled all objects of the resource for the binding's export, or the export sees them anyway.
func shows(binding *apisv1alpha2.APIBinding, resource schema.GroupResource) bool {
	for _, bound := range binding.Status.BoundResources {
		if bound.Group == resource.Group && bound.Resource == resource.Resource {
			return true
		}
	}
	claimed := false
	for _, claim := range binding.Spec.PermissionClaims {
		if claim.State != apisv1alpha2.ClaimAccepted || claim.Group != resource.Group || claim.Resource != resource.Resource {
			continue
		}
		claimed = true
		if isApplied(binding, claim) {
			return true
		}
	}
	return !claimed && resource == apiBindings // an export's own are shown without a claim
}

// isApplied says whether kcp has done what follows from a claim that is accepted.
func isApplied(binding *apisv1alpha2.APIBinding, accepted apisv1alpha2.AcceptablePermissionClaim) bool {
	return slices.ContainsFunc(binding.Status.AppliedPermissionClaims, func(applied apisv1alpha2.ScopedPermissionClaim) bool {
		return sameScope(accepted.ScopedPermissionClaim, applied)
	})
}

// isAccepted says whether the binding accepts what kcp has applied.
func isAccepted(binding *apisv1alpha2.APIBinding, applied apisv1alpha2.ScopedPermissionClaim) bool {
	return slices.ContainsFunc(binding.Spec.PermissionClaims, func(claim apisv1alpha2.AcceptablePermissionClaim) bool {
		return claim.State == apisv1alpha2.ClaimAccepted && sameScope(claim.ScopedPermissionClaim, applied)
	})
}

// sameScope says whether two claims are for the same objects, whatever may be done with them.
func sameScope(one, other apisv1alpha2.ScopedPermissionClaim) bool {
	return one.EqualGRI(other.PermissionClaim) && equality.Semantic.DeepEqual(one.Selector, other.Selector)
}
