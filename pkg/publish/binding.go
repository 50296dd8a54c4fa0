package publish

import (
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// binding is what krop remembers of an APIBinding.
type binding struct {
	resourceVersion string
	bound           bool // the export's kind is served in the workspace
	deleting        bool
	accepted        []acceptedClaim
	doubts          []apisv1alpha2.PermissionClaim
}

// acceptedClaim is a claim that the binding accepts.
type acceptedClaim struct {
	v1alpha1.PermissionClaim // its verbs are those that take effect; none if the export doesn't claim it
	claim                    apisv1alpha2.PermissionClaim
	selector                 labels.Selector
	applied                  bool // kcp shows the export all that the claim is for
}

func bindingOf(from *apisv1alpha2.APIBinding) *binding {
	result := &binding{
		resourceVersion: from.ResourceVersion,
		bound:           from.Status.Phase == apisv1alpha2.APIBindingPhaseBound,
		deleting:        from.DeletionTimestamp != nil,
	}
	for _, claim := range from.Spec.PermissionClaims {
		if claim.State != apisv1alpha2.ClaimAccepted {
			continue
		}
		selector, err := selectorOf(claim.Selector)
		if err != nil {
			continue // kcp ignores such a claim, too
		}
		effective := kropClaim(claim.PermissionClaim)
		effective.Verbs = effectiveVerbs(claim.PermissionClaim, from.Status.ExportPermissionClaims)
		result.accepted = append(result.accepted, acceptedClaim{
			PermissionClaim: effective, claim: claim.PermissionClaim, selector: selector, applied: isApplied(from, claim),
		})
	}
	return result
}

// same says whether nothing has changed that krop cares about.
func (b *binding) same(other *binding) bool {
	return b.bound == other.bound && b.deleting == other.deleting &&
		slices.EqualFunc(b.accepted, other.accepted, func(x, y acceptedClaim) bool {
			return x.claim.EqualGRI(y.claim) && x.applied == y.applied && slices.Equal(x.Verbs, y.Verbs) && x.selector.String() == y.selector.String()
		})
}

func selectorOf(selector apisv1alpha2.PermissionClaimSelector) (labels.Selector, error) {
	if selector.MatchAll {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(&selector.LabelSelector)
}

// effectiveVerbs are those that both sides name. kcp takes no side's "*" for more than itself.
func effectiveVerbs(accepted apisv1alpha2.PermissionClaim, claimed []apisv1alpha2.PermissionClaim) []string {
	for _, claim := range claimed {
		if claim.EqualGRI(accepted) {
			return slices.DeleteFunc(slices.Clone(accepted.Verbs), func(verb string) bool { return !slices.Contains(claim.Verbs, verb) })
		}
	}
	return nil
}
