package publish

import (
	"strconv"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// applied is what kcp writes once it has labelled everything that a claim is for.
func applied(claim apisv1alpha2.PermissionClaim, selector apisv1alpha2.PermissionClaimSelector) func(*apisv1alpha2.APIBinding) {
	return func(from *apisv1alpha2.APIBinding) {
		from.Status.AppliedPermissionClaims = append(from.Status.AppliedPermissionClaims, apisv1alpha2.ScopedPermissionClaim{PermissionClaim: claim, Selector: selector})
	}
}

func rejects(claim apisv1alpha2.PermissionClaim) func(*apisv1alpha2.APIBinding) {
	return func(from *apisv1alpha2.APIBinding) {
		rejected := apisv1alpha2.AcceptablePermissionClaim{State: apisv1alpha2.ClaimRejected}
		rejected.PermissionClaim, rejected.Selector = claim, everything
		from.Spec.PermissionClaims = append(from.Spec.PermissionClaims, rejected)
	}
}

func TestObjectsAreShownOnceTheirClaimIsApplied(t *testing.T) {
	claim, other := configMaps("get"), configMaps("get")
	other.IdentityHash = "another"
	some := apisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	owns := func(from *apisv1alpha2.APIBinding) {
		from.Status.BoundResources = []apisv1alpha2.BoundAPIResource{{Resource: "configmaps"}}
	}
	for name, test := range map[string]struct {
		binding []func(*apisv1alpha2.APIBinding)
		want    bool
	}{
		"accepted and applied":                   {[]func(*apisv1alpha2.APIBinding){accepts(claim, everything), applied(claim, everything)}, true},
		"accepted":                               {[]func(*apisv1alpha2.APIBinding){accepts(claim, everything)}, false},
		"accepted; applied for fewer":            {[]func(*apisv1alpha2.APIBinding){accepts(claim, everything), applied(claim, some)}, false},
		"accepted; another kind's applied":       {[]func(*apisv1alpha2.APIBinding){accepts(claim, everything), applied(other, everything)}, false},
		"rejected, and still applied":            {[]func(*apisv1alpha2.APIBinding){rejects(claim), applied(claim, everything)}, false},
		"not claimed":                            {nil, false},
		"not claimed, but of the export's kinds": {[]func(*apisv1alpha2.APIBinding){owns}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shows(apiBinding("consumer1", "1", test.binding...), schema.GroupResource{Resource: "configmaps"}); got != test.want {
				t.Errorf("shown: %t, want %t", got, test.want)
			}
		})
	}
	if !shows(apiBinding("consumer1", "1"), apiBindings) {
		t.Error("an export doesn't see its own bindings")
	}
}

func TestThatAClaimIsAppliedIsAnEvent(t *testing.T) {
	b, store := newFollowed()
	var got []BindingEventType
	b.Subscribe(func(event BindingEvent) { got = append(got, event.Type) })
	claim := configMaps("get")
	for _, each := range []*apisv1alpha2.APIBinding{
		apiBinding("consumer1", "1", accepts(claim, everything)),
		apiBinding("consumer1", "2", accepts(claim, everything), applied(claim, everything)),
	} {
		if err := store.Update(each); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[1] != BindingChanged {
		t.Errorf("events %v, want the binding added, and changed when the claim is applied", got)
	}
}

// TestAClaimThatWasGivenUpIsDoubted tells the watch what happens to a claim, and asks whether lists are believed.
func TestAClaimThatWasGivenUpIsDoubted(t *testing.T) {
	claim := configMaps("get")
	shown := []func(*apisv1alpha2.APIBinding){accepts(claim, everything), applied(claim, everything)}
	givenUp := []func(*apisv1alpha2.APIBinding){rejects(claim), applied(claim, everything)}
	hidden := []func(*apisv1alpha2.APIBinding){rejects(claim)}
	for name, test := range map[string]struct {
		history [][]func(*apisv1alpha2.APIBinding)
		want    bool
	}{
		"shown":                               {[][]func(*apisv1alpha2.APIBinding){shown}, true},
		"given up":                            {[][]func(*apisv1alpha2.APIBinding){shown, givenUp}, false},
		"accepted again before it was hidden": {[][]func(*apisv1alpha2.APIBinding){shown, givenUp, shown}, false},
		"accepted again, and something else happened": {[][]func(*apisv1alpha2.APIBinding){shown, givenUp, shown, shown}, false},
		"hidden, and shown again":                     {[][]func(*apisv1alpha2.APIBinding){shown, givenUp, hidden, shown}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, store := newFollowed()
			var last *apisv1alpha2.APIBinding
			for i, happened := range test.history {
				last = apiBinding("consumer1", strconv.Itoa(i), happened...)
				if err := store.Update(last); err != nil {
					t.Fatal(err)
				}
			}
			resource := schema.GroupResource{Resource: "configmaps"}
			if got := b.isCertain(store.followed, last, resource); got != test.want {
				t.Errorf("certain: %t, want %t", got, test.want)
			}
			if last.ResourceVersion = "not seen"; b.isCertain(store.followed, last, resource) {
				t.Error("a binding that the watch hasn't seen yet is certain")
			}
		})
	}
}
