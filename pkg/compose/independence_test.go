package compose_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// many has one of each: what fails, what waits for that, what waits for a controller, and what has to do with none
// of them.
const many = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      names: "[]string"
    status:
      free: ${free.metadata.name}
      address: ${service.status.loadBalancer.ingress[0].ip}
      conditions:
      - '${runtime.newCondition({type: "HasFree", status: free.metadata.name != "" ? "True" : "False", reason: "Looked", message: ""})}'
      - '${runtime.newCondition({type: "HasAddress", status: service.status.loadBalancer.ingress[0].ip != "" ? "True" : "False", reason: "Looked", message: ""})}'
  resources:
  - id: broken
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: broken, namespace: PROVIDER}
      data: {names: "${schema.spec.names.join(',')}"}
  - id: held
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: held, namespace: CONSUMER}
      data: {name: "${broken.metadata.name}"}
  - id: heldtoo
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: heldtoo, namespace: CONSUMER}
      data: {name: "${held.metadata.name}"}
  - id: service
    target: provider
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: service, namespace: PROVIDER}
      spec:
        type: LoadBalancer
        ports: [{port: 80}]
  - id: awaiting
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: awaiting, namespace: CONSUMER}
      data: {address: "${service.status.loadBalancer.ingress[0].ip}"}
  - id: free
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: free, namespace: CONSUMER}
  - id: part
    forEach:
    - name: ${schema.spec.names}
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "item-${name}", namespace: CONSUMER}
      data: {free: "${free.metadata.name}"}
`

// quotaOn makes the provider's plane refuse real writes of ConfigMaps.
func (f *fixture) quotaOn() {
	f.providerProxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		write := r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/configmaps")
		if !write || r.URL.Query().Get("dryRun") != "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, err := w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"exceeded quota: small"}`))
		return err == nil
	})
}

func TestWhatFailsOrPendsHoldsBackOnlyWhatDependsOnIt(t *testing.T) {
	f := newFixture(t, many, names("a", "b"))
	f.admit()
	f.quotaOn()
	result, err := f.composer.Apply(t.Context(), f.request(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]v1alpha1.State{
		"broken": v1alpha1.StateFailed, "held": v1alpha1.StatePending, "heldtoo": v1alpha1.StatePending,
		"service": v1alpha1.StateReady, "awaiting": v1alpha1.StatePending,
		"free": v1alpha1.StateReady, "part": v1alpha1.StateReady,
	}
	expectStates(t, result.Instance, want)
	if got := f.configMaps(f.consumerNamespace); !slices.Equal(got, []string{"free", "item-a", "item-b"}) {
		t.Errorf("consumer has %v", got)
	}
	if got := condition(t, result.Instance, "HasFree"); got != "True" {
		t.Errorf("the author's condition is %q", got)
	}
	if got := condition(t, result.Instance, "HasAddress"); got != "" {
		t.Errorf("a condition on what isn't there yet is %q", got)
	}
	f.expectReasons(result.Instance)

	// Children that are no longer wanted go all the same.
	f.change(names("b"))
	f.admit()
	applied, err := f.composer.Apply(t.Context(), f.request(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	request := f.request()
	request.Instance = applied.Instance
	pruned, err := f.composer.Prune(t.Context(), request, applied.Plan, f.store)
	if err != nil || pruned.Err != nil {
		t.Fatal(err, pruned.Err)
	}
	if got := f.configMaps(f.consumerNamespace); !slices.Equal(got, []string{"free", "item-b"}) {
		t.Errorf("consumer has %v after pruning", got)
	}
	expectStates(t, pruned.Instance, want)
}

// expectReasons looks whether rows name the node that is the reason, its plane and object.
func (f *fixture) expectReasons(instance *unstructured.Unstructured) {
	f.Helper()
	service := rows(f.T, instance)["service"][0]
	broken := rows(f.T, instance)["broken"][0]
	object := func(row v1alpha1.ComposedResource) string { return row.Kind + " " + row.Namespace + "/" + row.Name }
	for id, want := range map[string][2]string{
		"broken":   {"", "exceeded quota: small"},
		"held":     {"broken", `resource "broken" (provider ` + object(broken) + `) has failed: exceeded quota: small`},
		"heldtoo":  {"broken", `resource "broken" (provider ` + object(broken) + `) has failed: exceeded quota: small`},
		"awaiting": {"service.status.loadBalancer.ingress[0].ip", "service.status.loadBalancer.ingress[0].ip is not set on provider " + object(service) + " yet"},
	} {
		if row := rows(f.T, instance)[id][0]; row.WaitingFor != want[0] || row.Message != want[1] {
			f.Errorf("%s waits for %q: %q", id, row.WaitingFor, row.Message)
		}
	}
}

func TestADeletionThatIsStuckHoldsBackOnlyWhatItDependsOn(t *testing.T) {
	f := newFixture(t, chains, spec("extra", "all"))
	f.write()
	last := f.child("last")
	last.Finalizers = []string{"example.org/stuck"}
	if _, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).Update(t.Context(), last, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.change(map[string]any{"extra": "none"})
	f.admit()
	f.prune()
	if got := f.configMaps(f.consumerNamespace); !slices.Equal(got, []string{"first", "last"}) {
		t.Errorf("%v are left, want those that somebody holds, and what they depend on", got)
	}
}

// chains is first <- last, and an independent one in a lower wave than last.
const chains = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec: {size: string, key: string, extra: string}
  resources:
  - id: first
    includeWhen: ["${schema.spec.extra == 'all'}"]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: first, namespace: CONSUMER}
  - id: last
    includeWhen: ["${schema.spec.extra == 'all'}"]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: last, namespace: CONSUMER}
      data: {first: "${first.metadata.name}"}
  - id: alone
    includeWhen: ["${schema.spec.extra == 'all'}"]
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: alone, namespace: CONSUMER}
`

// levels has something wrong on two planes, at two levels, of four kinds.
const levels = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec: {size: string, key: string, extra: string}
    status:
      size: ${string(int(schema.spec.extra))}
  resources:
  - id: base
    target: provider
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: base, namespace: PROVIDER}
      spec: {ports: [{port: 80}]}
  - id: calculated
    target: provider
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: calculated, namespace: PROVIDER}
      stringData: {size: "${string(int(schema.spec.size))}"}
  - id: validated
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: validated, namespace: CONSUMER}
      data: "${{schema.spec.key: base.metadata.name}}"
  - id: taken
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: taken, namespace: CONSUMER}
      data: {base: "${base.metadata.name}"}
  - id: limited
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: limited, namespace: PROVIDER}
      data: {base: "${base.metadata.name}"}
`

func TestWhatIsWrongOnTwoPlanesAtTwoLevelsIsOneAnswerInAStableOrder(t *testing.T) {
	f := newFixture(t, levels, spec("size", "large", "key", "not a key!", "extra", "many"))
	f.create(f.consumerNamespace, "taken")
	f.quota(f.providerNamespace, "count/configmaps", "0")
	status := f.refused()
	for range 3 {
		if again := f.refused(); !apiequality.Semantic.DeepEqual(status, again) {
			t.Errorf("first %+v\nthen %+v", status, again)
		}
	}
	if status.Code != http.StatusUnprocessableEntity {
		t.Errorf("code %d", status.Code)
	}
	want := []string{"spec.size", "resources[validated].data", "resources[taken]", "resources[limited]"}
	var got []string
	for _, cause := range status.Details.Causes {
		field, _, _ := strings.Cut(cause.Field, "[not a key!]")
		got = append(got, field)
	}
	if !slices.Equal(got, want) {
		t.Errorf("causes of %q, want %q: %s", got, want, status.Message)
	}
	f.nothingWrittenBut("taken")
}

func (f *fixture) nothingWrittenBut(name string) {
	f.Helper()
	if got := append(f.configMaps(f.consumerNamespace), f.configMaps(f.providerNamespace)...); !slices.Equal(got, []string{name}) {
		f.Errorf("there are %v", got)
	}
}
