package publish

import (
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// doubtTime is how long a claim isn't believed to be applied after it was given up and accepted again. kcp may be taking
// labels off then, some hundred objects a second, and puts them on again without a word when it notices.
const doubtTime = 30 * time.Second

// doubt is about a claim that a workspace gave up while kcp showed all that it is for. Until kcp has hidden all of that, it
// goes on to say that the claim is applied, also to who accepts it again: there is nothing in a binding that
// says which of its generations the status is of.
type doubt struct {
	claim apisv1alpha2.PermissionClaim
	until time.Time // zero as long as the claim isn't accepted again
}

// doubtsOf are the doubts about a binding, of which before was seen last (nil: nothing). One ends when kcp no longer says
// that the claim is applied: whenever it says so again, it is.
func doubtsOf(from *apisv1alpha2.APIBinding, before *binding, now time.Time) []doubt {
	var doubts []doubt
	for _, applied := range from.Status.AppliedPermissionClaims {
		last := before.doubtOf(applied.PermissionClaim)
		switch {
		case !isAccepted(from, applied):
			doubts = append(doubts, doubt{claim: applied.PermissionClaim})
		case last != nil && last.until.IsZero():
			doubts = append(doubts, doubt{claim: applied.PermissionClaim, until: now.Add(doubtTime)})
		case last != nil && now.Before(last.until):
			doubts = append(doubts, *last)
		}
	}
	return doubts
}

// endsOfDoubts are when something that was accepted again, unlike before, will be believed.
func (b *binding) endsOfDoubts(before *binding) (ends []time.Time) {
	for _, d := range b.doubts {
		if last := before.doubtOf(d.claim); last != nil && last.until.IsZero() && !d.until.IsZero() {
			ends = append(ends, d.until)
		}
	}
	return ends
}

func (b *binding) doubtOf(claim apisv1alpha2.PermissionClaim) *doubt {
	if b == nil {
		return nil
	}
	i := slices.IndexFunc(b.doubts, func(d doubt) bool { return d.claim.EqualGRI(claim) })
	if i < 0 {
		return nil
	}
	return &b.doubts[i]
}

// isAccepted says whether the binding accepts what kcp has applied.
func isAccepted(from *apisv1alpha2.APIBinding, applied apisv1alpha2.ScopedPermissionClaim) bool {
	return slices.ContainsFunc(from.Spec.PermissionClaims, func(claim apisv1alpha2.AcceptablePermissionClaim) bool {
		return claim.State == apisv1alpha2.ClaimAccepted && claim.EqualGRI(applied.PermissionClaim) &&
			equality.Semantic.DeepEqual(applied.Selector, claim.Selector)
	})
}

// isCertain says whether the watch has seen the binding as it is now, and raised no doubt about the resource.
func (b *Bindings) isCertain(f *followed, from *apisv1alpha2.APIBinding, resource schema.GroupResource) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	seen := f.clusters[logicalcluster.From(from)][from.Name]
	if seen == nil || seen.resourceVersion != from.ResourceVersion {
		return false
	}
	now := time.Now()
	return !slices.ContainsFunc(seen.doubts, func(d doubt) bool {
		ended := !d.until.IsZero() && now.After(d.until)
		return !ended && d.claim.Group == resource.Group && d.claim.Resource == resource.Resource
	})
}
