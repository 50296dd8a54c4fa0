package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// reader is an instance as a user writes it.
func reader(name string, spec map[string]any) string {
	raw, err := yaml.Marshal(instance("Reader", name, spec).Object)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// applies has kubectl apply a manifest.
func (a actor) applies(manifest string) {
	a.t.Helper()
	_, err := bed.Kubectl(a.user).Apply(a.t.Context(), manifest)
	must(a.t, err)
}

// TestWhatIsMissingIsNamedAndHoldsBackItsDependentsOnly is about requests: each step is seen in what kubectl has applied.
func TestWhatIsMissingIsNamedAndHoldsBackItsDependentsOnly(t *testing.T) {
	provider, consumer, _ := theReaders(t)
	consumer.applies(reader("waits", map[string]any{"settings": "waits", "prices": "waits"}))
	must(t, consumer.has(configMaps, "waits-plain", "waits", "data", "for"))
	must(t, consumer.has(configMaps, "waits-listed", "", "data", "keys"))
	must(t, consumer.missing(configMaps, "waits-valued"))
	shown := consumer.kubectl("get", "reader", "waits", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	for _, want := range []string{
		`resource "settings" (consumer ConfigMap default/waits) does not exist yet (awaited by "valued")`,
		`resource "prices" (provider ConfigMap default/waits) does not exist yet (awaited by "priced")`,
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("Ready says %q, want %q", shown, want)
		}
	}
	waiting := row(consumer.get(readers, "waits"), "valued")
	if waiting["state"] != "Pending" || waiting["waitingFor"] != "settings (consumer ConfigMap default/waits does not exist)" {
		t.Errorf("the row of what waits is %v", waiting)
	}

	consumer.writes(configMaps, "ConfigMap", "waits", nil, map[string]any{"value": "v1"})
	provider.writes(configMaps, "ConfigMap", "waits", nil, map[string]any{"price": "10"})
	consumer.applies(reader("waits", map[string]any{"settings": "waits", "prices": "waits", "tier": "gold"}))
	must(t, consumer.has(configMaps, "waits-valued", "v1", "data", "value"))
	must(t, consumer.has(configMaps, "waits-priced", "10", "data", "price"))
}

// TestASelectionOfTheProvidersIsAList has it grow and shrink, and one of its objects keep the others waiting.
func TestASelectionOfTheProvidersIsAList(t *testing.T) {
	provider, consumer, _ := theReaders(t)
	onShelf := map[string]string{"shelf": "top"}
	provider.writes(configMaps, "ConfigMap", "chair", onShelf, map[string]any{"state": "sold"})
	provider.writes(configMaps, "ConfigMap", "table", onShelf, map[string]any{"state": "new"})
	spec := map[string]any{"settings": "none", "shelf": "top"}
	consumer.applies(reader("shop", spec))
	if got := row(consumer.get(readers, "shop"), "sold")["waitingFor"]; got != "goods[1] (each.data.state == 'sold')" {
		t.Errorf("children wait for %v, want the object that isn't ready", got)
	}
	provider.patch(configMaps, "table", `{"data":{"state":"sold"}}`)
	spec["tier"] = "gold"
	consumer.applies(reader("shop", spec))
	must(t, consumer.has(configMaps, "shop-chair", "sold", "data", "state"))
	must(t, consumer.has(configMaps, "shop-table", "sold", "data", "state"))

	provider.delete(configMaps, "chair")
	spec["tier"] = "tin"
	consumer.applies(reader("shop", spec))
	eventually(t, "the child of what is gone goes", func() error { return consumer.missing(configMaps, "shop-chair") })
	must(t, consumer.has(configMaps, "shop-table", "sold", "data", "state"))
}

// TestWhatIsOnlyReadStaysAsItIs compares all that is stored of it, from before there was an instance until after it is gone.
func TestWhatIsOnlyReadStaysAsItIs(t *testing.T) {
	provider, consumer, _ := theReaders(t)
	consumer.writes(configMaps, "ConfigMap", "stays", nil, map[string]any{"value": "v1"})
	consumer.writes(secrets, "Secret", "stays", map[string]string{"tier": "stays"}, map[string]any{"key": encoded("secret")})
	provider.writes(configMaps, "ConfigMap", "stays", nil, map[string]any{"price": "10"})
	provider.writes(configMaps, "ConfigMap", "stayson", map[string]string{"shelf": "stays"}, map[string]any{"state": "sold"})
	everything := func() string {
		return stored(t, consumer.get(configMaps, "stays"), consumer.get(secrets, "stays"), provider.get(configMaps, "stays"), provider.get(configMaps, "stayson"))
	}
	before := everything()

	spec := map[string]any{"settings": "stays", "prices": "stays", "tier": "stays", "shelf": "stays"}
	made := consumer.makes(readers, instance("Reader", "stays", spec))
	must(t, conditionIs(made, "Ready", "True"))
	must(t, fieldIs(made, []any{"stays"}, "status", "keys"))
	consumer.patch(readers, "stays", `{"spec":{"prices":"nowhere","shelf":"nowhere"}}`)
	for _, node := range []string{"settings", "keys", "prices", "goods"} {
		if found := row(consumer.get(readers, "stays"), node); found != nil {
			t.Errorf("%s is in the inventory: %v", node, found)
		}
	}
	consumer.delete(readers, "stays")
	eventually(t, "the instance goes", func() error { return consumer.missing(readers, "stays") })
	must(t, nothingOf(made, consumer, provider))
	if diff := cmp.Diff(before, everything()); diff != "" {
		t.Errorf("what is only read was changed:\n%s", diff)
	}
}

// stored is all that API servers tell of objects, as text.
func stored(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var all strings.Builder
	for _, object := range objects {
		raw, err := json.MarshalIndent(object, "", " ")
		must(t, err)
		all.Write(raw)
	}
	return all.String()
}

// TestWhatIsOnlyReadIsClaimedForReading has one consumer accept the claim as it is, like all others in these tests, and
// one reject it.
func TestWhatIsOnlyReadIsClaimedForReading(t *testing.T) {
	provider, _, _ := theReaders(t)
	blueprint, err := provider.Resource(blueprints).Get(t.Context(), "readers", metav1.GetOptions{})
	must(t, err)
	claims, _, _ := unstructured.NestedSlice(blueprint.Object, "status", "permissionClaims")
	claimed := slices.IndexFunc(claims, func(claim any) bool { return claim.(map[string]any)["resource"] == "secrets" })
	if claimed < 0 {
		t.Fatalf("secrets aren't claimed: %v", claims)
	}
	if verbs, _, _ := unstructured.NestedStringSlice(claims[claimed].(map[string]any), "verbs"); !slices.Equal(verbs, []string{"get", "list", "watch"}) {
		t.Errorf("secrets, which are only read, are claimed with %v", verbs)
	}

	rejects := newUser(t, "rejectsreads")
	binding, err := rejecting(t.Context(), "readers", "secrets")
	must(t, err)
	rejects.applies(binding)
	rejects.kubectl("wait", "--for=condition=Ready", "apibinding/readers", "--timeout=60s")
	eventually(t, "what can't be read is refused", func() error {
		_, err := rejects.in(readers).Create(t.Context(), instance("Reader", "refused", map[string]any{"settings": "x"}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		want := `resource "keys" (consumer Secret): krop may not list secrets on the consumer plane: accept the permission claim {group: "", resource: secrets, verbs: [get, list, watch]}`
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("the answer is %w, want 403 and %s", err, want)
		}
		return nil
	})
}

// rejecting is a binding to an offering that accepts all claims but one.
func rejecting(ctx context.Context, name, resource string) (string, error) {
	text, err := bindingOf(ctx, name)
	if err != nil {
		return "", err
	}
	var binding unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &binding.Object); err != nil {
		return "", err
	}
	claims, _, err := unstructured.NestedSlice(binding.Object, "spec", "permissionClaims")
	if err != nil {
		return "", err
	}
	for _, claim := range claims {
		if fields := claim.(map[string]any); fields["resource"] == resource {
			fields["state"] = "Rejected"
		}
	}
	if err := unstructured.SetNestedSlice(binding.Object, claims, "spec", "permissionClaims"); err != nil {
		return "", err
	}
	raw, err := yaml.Marshal(binding.Object)
	return string(raw), err
}
