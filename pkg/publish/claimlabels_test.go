package publish

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAClaimWithASelectorStampsOnlyWhatItSelects(t *testing.T) {
	b, store := newFollowed()
	selector := apisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	if err := store.Add(apiBinding("consumer1", "1", accepts(configMaps("get"), selector), claims(configMaps("get")))); err != nil {
		t.Fatal(err)
	}
	stamps := func(consumer logicalcluster.Name, team string) map[string]string {
		all := b.WithClaimLabels(consumer, schema.GroupResource{Resource: "configmaps"}, map[string]string{"team": team})
		delete(all, "team")
		return all
	}
	for team, want := range map[string]int{"a": 1, "b": 0} {
		if stamps := stamps("consumer1", team); len(stamps) != want {
			t.Errorf("team %s: got labels %v, want %d", team, stamps, want)
		}
	}
	if stamps := stamps("consumer2", "a"); len(stamps) != 0 {
		t.Errorf("another workspace: got labels %v", stamps)
	}
}

const foreignClaim = "claimed.internal.apis.kcp.io/foreign"

// TestLabelsFollowWhatIsAccepted plays the life of a claim on an object that has labels of its own and one of an
// export that krop knows nothing of.
func TestLabelsFollowWhatIsAccepted(t *testing.T) {
	b, store := newFollowed()
	resource := schema.GroupResource{Resource: "configmaps"}
	object := map[string]string{"app": "mine", foreignClaim: "x"}
	written := func() map[string]string { return b.WithClaimLabels("consumer1", resource, object) }
	stale := maps.Clone(object)
	stale[claimLabel(testExport)] = "of an earlier claim"

	if got := b.WithClaimLabels("consumer1", resource, stale); !cmp.Equal(got, stale) {
		t.Errorf("before bindings are known: %v, want what was there", got)
	}
	if err := store.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	if got := b.WithClaimLabels("consumer1", resource, stale); !cmp.Equal(got, object) {
		t.Errorf("a claim of which it is known that it isn't accepted: %v, want %v", got, object)
	}
	if err := store.Add(apiBinding("consumer1", "2", accepts(configMaps("get"), everything))); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(object)
	maps.Copy(want, b.WithClaimLabels("consumer1", resource, nil))
	if got := written(); len(want) != 3 || !cmp.Equal(got, want) {
		t.Errorf("an accepted claim: %v, want %v", got, want)
	}
	if len(object) != 2 {
		t.Errorf("the object's own labels were changed: %v", object)
	}
	if got := b.WithClaimLabels("consumer1", resource, nil); len(got) != 1 {
		t.Errorf("an object without labels: %v, want one", got)
	}
	object = want
	if err := store.Add(apiBinding("consumer1", "3")); err != nil {
		t.Fatal(err)
	}
	if got := written(); len(got) != 2 || got["app"] != "mine" || got[foreignClaim] != "x" {
		t.Errorf("a claim that was revoked: %v", got)
	}
}
