package publish

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

var testExport = v1alpha1.ExportKey{Cluster: "provider1", Name: "webapps.example.org"}

// newFollowed is an export whose bindings come from the test alone.
func newFollowed() (*Bindings, *bindingStore) {
	b := &Bindings{
		exports:     map[v1alpha1.ExportKey]*followed{},
		byCluster:   map[logicalcluster.Name]map[v1alpha1.ExportKey]struct{}{},
		byLabel:     map[string]v1alpha1.ExportKey{claimLabel(testExport): testExport},
		subscribers: map[int]func(BindingEvent){},
	}
	f := &followed{export: testExport, stop: func() {}, listed: make(chan struct{}), clusters: map[logicalcluster.Name]map[string]*binding{}}
	b.exports[testExport] = f
	return b, &bindingStore{bindings: b, followed: f}
}

func apiBinding(cluster, resourceVersion string, change ...func(*apisv1alpha2.APIBinding)) *apisv1alpha2.APIBinding {
	from := &apisv1alpha2.APIBinding{}
	from.Name = "webapps"
	from.ResourceVersion = resourceVersion
	from.Annotations = map[string]string{logicalcluster.AnnotationKey: cluster}
	from.Status.Phase = apisv1alpha2.APIBindingPhaseBound
	for _, each := range change {
		each(from)
	}
	return from
}

func accepts(claim apisv1alpha2.PermissionClaim, selector apisv1alpha2.PermissionClaimSelector) func(*apisv1alpha2.APIBinding) {
	return func(from *apisv1alpha2.APIBinding) {
		accepted := apisv1alpha2.AcceptablePermissionClaim{State: apisv1alpha2.ClaimAccepted}
		accepted.PermissionClaim, accepted.Selector = claim, selector
		from.Spec.PermissionClaims = append(from.Spec.PermissionClaims, accepted)
	}
}

func claims(claim apisv1alpha2.PermissionClaim) func(*apisv1alpha2.APIBinding) {
	return func(from *apisv1alpha2.APIBinding) {
		from.Status.ExportPermissionClaims = append(from.Status.ExportPermissionClaims, claim)
	}
}

func configMaps(verbs ...string) apisv1alpha2.PermissionClaim {
	return apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: verbs}
}

var everything = apisv1alpha2.PermissionClaimSelector{MatchAll: true}

func TestVerbsTakeEffectOnlyWhereBothSidesNameThem(t *testing.T) {
	for name, test := range map[string]struct {
		accepted, claimed, want []string
	}{
		"fewer accepted":        {[]string{"get"}, []string{"get", "list"}, []string{"get"}},
		"more accepted":         {[]string{"get", "delete"}, []string{"get", "list"}, []string{"get"}},
		"all accepted":          {[]string{"*"}, []string{"get", "list"}, []string{}},
		"all claimed, accepted": {[]string{"*"}, []string{"*", "get"}, []string{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			from := apiBinding("consumer1", "1", accepts(configMaps(test.accepted...), everything), claims(configMaps(test.claimed...)))
			if diff := cmp.Diff(test.want, bindingOf(from).accepted[0].Verbs); diff != "" {
				t.Errorf("verbs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClaimThatTheExportDroppedHasNoEffect(t *testing.T) {
	accepted := bindingOf(apiBinding("consumer1", "1", accepts(configMaps("get"), everything))).accepted
	if len(accepted) != 1 || len(accepted[0].Verbs) != 0 {
		t.Errorf("got %v, want one without verbs", accepted)
	}
}

func TestARelistAnnouncesWhatWasMissed(t *testing.T) {
	b, store := newFollowed()
	for _, cluster := range []string{"stays", "changes", "goes"} {
		if err := store.Add(apiBinding(cluster, "1")); err != nil {
			t.Fatal(err)
		}
	}
	got := map[logicalcluster.Name]BindingEventType{}
	b.Subscribe(func(event BindingEvent) { got[event.Cluster] = event.Type })
	relist := []any{apiBinding("stays", "1"), apiBinding("changes", "2", accepts(configMaps("get"), everything)), apiBinding("comes", "3")}
	if err := store.Replace(relist, "3"); err != nil {
		t.Fatal(err)
	}
	want := map[logicalcluster.Name]BindingEventType{"changes": BindingChanged, "goes": BindingRemoved, "comes": BindingAdded, "": BindingsListed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestABindingIsAddedWhenItIsBound(t *testing.T) {
	b, store := newFollowed()
	var got []BindingEventType
	b.Subscribe(func(event BindingEvent) { got = append(got, event.Type) })
	binding := func(from *apisv1alpha2.APIBinding) { from.Status.Phase = apisv1alpha2.APIBindingPhaseBinding }
	for _, each := range []*apisv1alpha2.APIBinding{apiBinding("consumer1", "1", binding), apiBinding("consumer1", "2"), apiBinding("consumer1", "3")} {
		if err := store.Update(each); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]BindingEventType{BindingChanged, BindingAdded}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestUntrackForgetsBindings(t *testing.T) {
	b, store := newFollowed()
	if err := store.Add(apiBinding("consumer1", "1")); err != nil {
		t.Fatal(err)
	}
	if exports := b.byCluster["consumer1"]; len(exports) != 1 {
		t.Fatalf("got exports %v, want one", exports)
	}
	b.Untrack(testExport)
	if exports := b.byCluster["consumer1"]; len(exports) != 0 {
		t.Errorf("got exports %v, want none", exports)
	}
	if err := store.Add(apiBinding("consumer1", "2")); err != nil { // an event that was under way
		t.Fatal(err)
	}
	if exports := b.byCluster["consumer1"]; len(exports) != 0 {
		t.Errorf("after a late event: got exports %v, want none", exports)
	}
}
