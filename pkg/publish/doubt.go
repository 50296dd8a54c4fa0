package publish

import (
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// doubtsOf are the claims of which it is doubtful whether kcp shows all that they are for, although it says so: those that
// the workspace gave up after before (what was seen last; nil: nothing), and those that it accepted again before kcp
// had hidden everything. There is nothing in a binding that says which of its generations the status is of. If the one in
// between was the last that kcp has acted on, what it has hidden by then stays hidden: it compares what is
// accepted to what it says is applied, and finds nothing to do.
//
// A doubt ends when kcp no longer says that the claim is applied: whenever it says so again, it is.
func doubtsOf(from *apisv1alpha2.APIBinding, before *binding) []apisv1alpha2.PermissionClaim {
	var doubts []apisv1alpha2.PermissionClaim
	for _, applied := range from.Status.AppliedPermissionClaims {
		if !isAccepted(from, applied) || before != nil && slices.ContainsFunc(before.doubts, applied.EqualGRI) {
			doubts = append(doubts, applied.PermissionClaim)
		}
	}
	return doubts
}

// isCertain says whether the watch has seen the binding as it is now, and raised no doubt about the resource.
func (b *Bindings) isCertain(f *followed, from *apisv1alpha2.APIBinding, resource schema.GroupResource) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	seen := f.clusters[logicalcluster.From(from)][from.Name]
	return seen != nil && seen.resourceVersion == from.ResourceVersion &&
		!slices.ContainsFunc(seen.doubts, func(claim apisv1alpha2.PermissionClaim) bool {
			return claim.Group == resource.Group && claim.Resource == resource.Resource
		})
}
