package compose_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// referring reads a ConfigMap of the consumer by name and those of the provider by label. Of two lists of children
// one depends on the former, and one on nothing.
const referring = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec: {names: "[]string", label: string}
    status: {zone: "${vpc.data.zone}", picked: "${images.map(i, i.metadata.name)}"}
  resources:
  - id: vpc
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: main, namespace: CONSUMER}}
  - id: images
    target: provider
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: PROVIDER, selector: {matchLabels: {image: "${schema.spec.label}"}}}}
  - id: dependent
    forEach: [{name: "${schema.spec.names}"}]
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "d-${name}", namespace: CONSUMER}, data: {zone: "${vpc.data.zone}"}}
  - id: mirror
    forEach: [{image: "${images}"}]
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "m-${image.metadata.name}", namespace: CONSUMER}, data: {size: "${image.data.size}"}}
  - id: independent
    forEach: [{name: "${schema.spec.names}"}]
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "i-${name}", namespace: CONSUMER}}
`

func referringSpec(names ...any) map[string]any {
	return map[string]any{"names": names, "label": "yes"}
}

// put creates a ConfigMap that is nobody's, or replaces its data.
func (f *fixture) put(namespace, name string, labels, data map[string]string) *corev1.ConfigMap {
	f.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: data}
	created, err := f.client.CoreV1().ConfigMaps(namespace).Create(f.Context(), object, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		f.Fatal(err)
	}
	return created
}

func (f *fixture) remove(namespace, name string) {
	f.Helper()
	if err := f.client.CoreV1().ConfigMaps(namespace).Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// stored is everything that the API server has of a ConfigMap, as text.
func (f *fixture) stored(namespace, name string) string {
	f.Helper()
	object, err := f.client.CoreV1().ConfigMaps(namespace).Get(f.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	raw, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		f.Fatal(err)
	}
	return string(raw)
}

// consumers is the consumer's ConfigMaps, without those that every namespace has.
func (f *fixture) consumers() []string {
	f.Helper()
	return slices.DeleteFunc(f.configMaps(f.consumerNamespace), func(name string) bool { return name == "kube-root-ca.crt" })
}

func (f *fixture) expectConsumers(want ...string) {
	f.Helper()
	if got := f.consumers(); !slices.Equal(got, want) {
		f.Errorf("ConfigMaps of the consumer: %v, want %v", got, want)
	}
}

func TestMissingReferenceHoldsBackOnlyWhatDependsOnIt(t *testing.T) {
	f := newFixture(t, referring, referringSpec("a"))
	result := f.write()
	f.expectConsumers("i-a")
	waiting := rows(t, result.Instance)["dependent"][0]
	if want := fmt.Sprintf("vpc (consumer ConfigMap %s/main does not exist)", f.consumerNamespace); waiting.State != v1alpha1.StatePending || waiting.WaitingFor != want {
		t.Errorf("dependent is %s and waits for %q, want %q", waiting.State, waiting.WaitingFor, want)
	}
	if want := fmt.Sprintf(`resource "vpc" (consumer ConfigMap %s/main) does not exist yet`, f.consumerNamespace); waiting.Message != want {
		t.Errorf("message %q, want %q", waiting.Message, want)
	}
	if got := rows(t, result.Instance)["independent"][0].State; got != v1alpha1.StateReady {
		t.Errorf("independent is %s", got)
	}
	if got := condition(t, result.Instance, v1alpha1.ConditionReady); got != "False" {
		t.Errorf("Ready=%s while something is missing", got)
	}

	f.put(f.consumerNamespace, "main", nil, map[string]string{"zone": "z1"})
	result = f.apply()
	f.expectConsumers("d-a", "i-a", "main")
	if got := f.child("dependent").Data["zone"]; got != "z1" {
		t.Errorf("zone %q, want z1", got)
	}
	if got := condition(t, result.Instance, v1alpha1.ConditionReady); got != "True" {
		t.Errorf("Ready=%s once everything is there", got)
	}
}

func TestMissingReferenceHoldsBackPruneOfItsDependentsOnly(t *testing.T) {
	f := newFixture(t, referring, referringSpec("a", "b"))
	f.put(f.consumerNamespace, "main", nil, map[string]string{"zone": "z1"})
	f.put(f.providerNamespace, "x", map[string]string{"image": "yes"}, map[string]string{"size": "1"})
	f.write()
	f.expectConsumers("d-a", "d-b", "i-a", "i-b", "m-x", "main")

	f.remove(f.consumerNamespace, "main")
	f.remove(f.providerNamespace, "x")
	f.change(map[string]any{"names": []any{"a"}})
	f.admit()
	f.prune()
	f.expectConsumers("d-a", "d-b", "i-a")

	f.put(f.consumerNamespace, "main", nil, map[string]string{"zone": "z2"})
	f.prune()
	f.expectConsumers("d-a", "i-a", "main")
	if got := f.child("dependent").Data["zone"]; got != "z2" {
		t.Errorf("zone %q, want z2", got)
	}
}

func TestSelectionGrowsAndShrinks(t *testing.T) {
	f := newFixture(t, referring, referringSpec())
	f.put(f.consumerNamespace, "main", nil, map[string]string{"zone": "z1"})
	if got := condition(t, f.write().Instance, v1alpha1.ConditionReady); got != "True" {
		t.Errorf("Ready=%s with an empty selection", got)
	}
	f.expectConsumers("main")
	for _, name := range []string{"y", "x"} {
		f.put(f.providerNamespace, name, map[string]string{"image": "yes"}, map[string]string{"size": name})
	}
	f.put(f.providerNamespace, "other", map[string]string{"image": "no"}, nil)
	result := f.apply()
	f.expectConsumers("m-x", "m-y", "main")
	if picked, _, _ := unstructured.NestedStringSlice(result.Instance.Object, "status", "picked"); !slices.Equal(picked, []string{"x", "y"}) {
		t.Errorf("picked %v, want them in the order of their names", picked)
	}
	f.remove(f.providerNamespace, "x")
	f.prune()
	f.expectConsumers("m-y", "main")
	f.change(map[string]any{"label": "no"})
	// The mirror of what has no size can't be rendered; what was is kept until it is known what is wanted.
	f.admit()
	f.prune()
	f.expectConsumers("m-y", "main")
}

func TestWhatIsReadIsNeverTouched(t *testing.T) {
	f := newFixture(t, referring, referringSpec("a"))
	// Marks of another instance: what belongs to somebody may be read too.
	f.put(f.consumerNamespace, "main", map[string]string{v1alpha1.LabelInstanceUID: "other", v1alpha1.LabelConsumerCluster: "other"}, map[string]string{"zone": "z1"})
	f.put(f.providerNamespace, "x", map[string]string{"image": "yes"}, map[string]string{"size": "1"})
	before := f.stored(f.consumerNamespace, "main") + f.stored(f.providerNamespace, "x")
	f.write()
	f.change(map[string]any{"names": []any{"b"}})
	f.admit()
	f.prune()
	f.expectConsumers("d-b", "i-b", "m-x", "main")
	for id := range rows(t, f.store.get()) {
		if id == "vpc" || id == "images" {
			t.Errorf("%s is in the inventory", id)
		}
	}
	if !f.teardown() {
		t.Error("something is left to be deleted")
	}
	f.expectConsumers("main")
	if diff := cmp.Diff(before, f.stored(f.consumerNamespace, "main")+f.stored(f.providerNamespace, "x")); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
}

func TestReadsThatAreNotClaimedAreForbidden(t *testing.T) {
	for name, metadata := range map[string]string{
		"by name":     `{name: main, namespace: CONSUMER}`,
		"by selector": `{selector: {matchLabels: {a: b}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `
spec:
  schema: {apiVersion: v1alpha1, kind: Database, group: example.org}
  resources:
  - id: creds
    externalRef: {apiVersion: v1, kind: Secret, metadata: `+metadata+`}
`, map[string]any{})
			f.planes.consumer = f.as(f.consumerProxy)
			status := f.refused()
			if status.Code != http.StatusForbidden {
				t.Errorf("code %d, want 403: %s", status.Code, status.Message)
			}
			want := `accept the permission claim {group: "", resource: secrets, verbs: [get, list, watch]} of the APIExport ` + export
			if !strings.Contains(status.Message, want) || !strings.Contains(status.Message, `resource "creds" (consumer Secret`) {
				t.Errorf("message %q, want it to say %q", status.Message, want)
			}
		})
	}
}

func TestReadsThatFailHoldBackOnlyWhatDependsOnThem(t *testing.T) {
	f := newFixture(t, referring, referringSpec("a", "b"))
	f.put(f.consumerNamespace, "main", nil, map[string]string{"zone": "z1"})
	f.put(f.providerNamespace, "x", map[string]string{"image": "yes"}, map[string]string{"size": "1"})
	f.write()
	f.change(map[string]any{"names": []any{"a"}})
	f.admit()
	// Only what is read fails: by name on one plane, by selector on the other.
	f.consumerProxy.Fail(failing(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/configmaps/main") }))
	f.providerProxy.Fail(failing(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/configmaps") }))
	if status := f.refused(); status.Code != http.StatusServiceUnavailable || status.Details.RetryAfterSeconds == 0 {
		t.Errorf("a write is answered with %d, want 503 and when to try again", status.Code)
	}
	result, err := f.composer.Apply(t.Context(), f.request(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	if result.Err == nil || len(result.Warnings) != 2 {
		t.Errorf("error %v, warnings %q: want a retry, and both told", result.Err, result.Warnings)
	}
	if pruned, err := f.composer.Prune(t.Context(), f.request(), result.Plan, f.store); err != nil || pruned.Err != nil {
		t.Fatalf("prune: %v, %v", err, pruned.Err)
	}
	f.expectConsumers("d-a", "d-b", "i-a", "m-x", "main")
	if zone, _, _ := unstructured.NestedString(result.Instance.Object, "status", "zone"); zone != "z1" {
		t.Errorf("status.zone is %q, want it to stay while it isn't known", zone)
	}
	if message := rows(t, result.Instance)["dependent"][0].Message; !strings.Contains(message, "the consumer plane can't be reached now") && !strings.Contains(message, "out for a walk") {
		t.Errorf("dependents don't say why: %q", message)
	}
	f.consumerProxy.Fail(nil)
	f.providerProxy.Fail(nil)
	f.prune()
	f.expectConsumers("d-a", "i-a", "m-x", "main")
}

// failing answers 503 to requests that are to fail.
func failing(when func(*http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(response http.ResponseWriter, request *http.Request) bool {
		if request.Method != http.MethodGet || !when(request) {
			return false
		}
		response.Header().Set("Content-Type", "application/json")
		response.WriteHeader(http.StatusServiceUnavailable)
		_, _ = response.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","message":"out for a walk","code":503}`))
		return true
	}
}

func TestInstancesMayReadTheirOwnChildren(t *testing.T) {
	f := newFixture(t, `
spec:
  schema: {apiVersion: v1alpha1, kind: Database, group: example.org}
  resources:
  - id: own
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: CONSUMER}}
  - id: config
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: CONSUMER}, data: {a: "1"}}
  - id: dependent
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: dependent, namespace: CONSUMER}, data: {uid: "${own.metadata.uid}", a: "${own.data.a}"}}
`, map[string]any{})
	f.write()
	if got, want := f.child("dependent").Data["uid"], string(f.child("config").UID); got != want {
		t.Errorf("the child that was just written is read as %q, want %q", got, want)
	}
}

func TestSelectionsAreBounded(t *testing.T) {
	f := newFixture(t, referring, referringSpec())
	f.program.Limits = budget.Limits{budget.SelectedObjects: 1}
	for _, name := range []string{"x", "y"} {
		f.put(f.providerNamespace, name, map[string]string{"image": "yes"}, map[string]string{"size": "1"})
	}
	status := f.refused()
	want := fmt.Sprintf(`resource "images" (provider ConfigMap): configmaps that match "image=yes" in namespace %s: %s`,
		f.providerNamespace, budget.Limits{budget.SelectedObjects: 1}.More(budget.SelectedObjects))
	if status.Code != http.StatusUnprocessableEntity || !strings.Contains(status.Message, want) {
		t.Errorf("%d %s\nwant 422 and %s", status.Code, status.Message, want)
	}
}

func TestInvalidSelectorIsAnErrorOfTheInstance(t *testing.T) {
	f := newFixture(t, referring, map[string]any{"names": []any{}, "label": "not a label"})
	status := f.refused()
	if status.Code != http.StatusUnprocessableEntity || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "spec.label" {
		t.Errorf("%d, causes %+v; want 422 for spec.label", status.Code, status.Details.Causes)
	}
	if !strings.Contains(status.Message, `resource "images": expression "schema.spec.label": metadata.selector: `) {
		t.Errorf("message %q", status.Message)
	}
}

func TestSecretsAreReadAsBytes(t *testing.T) {
	f := newFixture(t, `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    status: {password: "${string(creds.data.password)}"}
  resources:
  - id: creds
    target: provider
    externalRef: {apiVersion: v1, kind: Secret, metadata: {name: creds, namespace: PROVIDER}}
  - id: copy
    template: {apiVersion: v1, kind: Secret, metadata: {name: copy, namespace: CONSUMER}, data: "${creds.data}"}
`, map[string]any{})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds"}, Data: map[string][]byte{"password": []byte("s3cret")}}
	if _, err := f.client.CoreV1().Secrets(f.providerNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	result := f.write()
	if got, _, _ := unstructured.NestedString(result.Instance.Object, "status", "password"); got != "s3cret" {
		t.Errorf("status.password is %q", got)
	}
	copied, err := f.client.CoreV1().Secrets(f.consumerNamespace).Get(t.Context(), "copy", metav1.GetOptions{})
	if err != nil || string(copied.Data["password"]) != "s3cret" {
		t.Errorf("the copy has %q, %v", copied.Data["password"], err)
	}
}

func TestWhatIsReadIsToldBefore(t *testing.T) {
	f := newFixture(t, referring, referringSpec("a"))
	request := f.request()
	told := map[engine.ReferenceKey]bool{}
	request.Reads = func(references []engine.Reference) {
		f.consumerProxy.Seen()
		for _, reference := range references {
			told[reference.Key()] = true
		}
	}
	result, err := f.composer.Apply(t.Context(), request, f.store)
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range result.Plan.References() {
		if !told[reference.Key()] {
			t.Errorf("%v was read without a word", reference.Object())
		}
	}
	if len(told) != 2 {
		t.Errorf("told of %d references, want 2", len(told))
	}
	path := "GET /services/apiexport/provider1/" + export + "/clusters/" + consumer.String() + "/api/v1/namespaces/" + f.consumerNamespace + "/configmaps/main"
	if seen := f.consumerProxy.Seen(); !slices.Contains(seen, path) {
		t.Errorf("requests after that: %q, want %s", seen, path)
	}
}
