package compose_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
)

func TestApplyWritesAllWavesOnBothPlanes(t *testing.T) {
	f := newFixture(t, twoPlanes, spec("size", "4"))
	result := f.write()
	expectStates(t, result.Instance, map[string]v1alpha1.State{
		"server": v1alpha1.StateReady, "config": v1alpha1.StateReady, "access": v1alpha1.StateReady,
	})
	if got := condition(t, result.Instance, v1alpha1.ConditionReady); got != "True" {
		t.Errorf("Ready is %s", got)
	}
	config, provider := f.child("config"), f.child("server")
	if config.Data["size"] != "8" || config.Data["server"] != provider.Name || provider.Namespace != f.providerNamespace {
		t.Errorf("config %v of server %s/%s", config.Data, provider.Namespace, provider.Name)
	}
	for node, list := range rows(t, result.Instance) {
		if list[0].UID == "" {
			t.Errorf("%s has no UID", node)
		}
	}
	if got, _, _ := unstructured.NestedString(result.Instance.Object, "status", "server"); got != provider.Name {
		t.Errorf("status.server is %q", got)
	}
	if f.store.writes != 1 {
		t.Errorf("%d statuses recorded, want one: all identities were known to preflight", f.store.writes)
	}
	f.consumerProxy.Seen()
	f.providerProxy.Seen()
	f.apply()
	for _, seen := range append(f.consumerProxy.Seen(), f.providerProxy.Seen()...) {
		if !strings.HasPrefix(seen, http.MethodGet) {
			t.Errorf("wrote what was as wanted: %s", seen)
		}
	}
	if f.store.writes != 1 {
		t.Error("recorded a status that had not changed")
	}
}

func TestIdentitiesAreRecordedBeforeChildrenAreWritten(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.store.put(f.store.get()) // stored without an inventory, as if preflight had known nothing
	var known []string
	f.store.before = func(instance *unstructured.Unstructured) {
		for node, list := range rows(t, instance) {
			if list[0].Name != "" && !slices.Contains(known, node) {
				known = append(known, node)
				if list[0].UID != "" {
					t.Errorf("%s was written before it was recorded", node)
				}
			}
		}
	}
	f.apply()
	if len(known) != 3 {
		t.Errorf("recorded %v", known)
	}
}

func TestNewerIntentStopsComposing(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.store.put(f.store.get())
	stale := f.request()
	f.change(map[string]any{"size": "3"})
	if _, err := f.composer.Apply(t.Context(), stale, f.store); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
	f.nothingWritten()
}

func TestChangeReachesDependentsInOneCall(t *testing.T) {
	f := newFixture(t, twoPlanes, spec("size", "1"))
	f.write()
	f.change(map[string]any{"size": "5"})
	f.write()
	if got := f.child("config").Data["size"]; got != "10" {
		t.Errorf("config says %s, want 10", got)
	}
	access, err := f.client.CoreV1().Secrets(f.consumerNamespace).Get(t.Context(), "db-access", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(access.Data["size"]); got != "10" {
		t.Errorf("access says %s, want 10", got)
	}
}

func TestDependentIsNotWrittenWithValuesThatAreAboutToChange(t *testing.T) {
	// config changes with the instance itself, and with server, which changes too.
	f := newFixture(t, strings.ReplaceAll(twoPlanes, "        size: ${server.data.size}\n", "        size: ${server.data.size}\n        own: ${schema.spec.size}\n"), spec("size", "1"))
	f.write()
	f.change(map[string]any{"size": "5"})
	f.admit()
	var applied []string
	f.consumerProxy.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Header.Get("Content-Type"), "apply-patch") && strings.HasSuffix(r.URL.Path, "-config") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			applied = append(applied, string(body))
		}
		return false
	})
	f.apply()
	if len(applied) != 1 || !strings.Contains(applied[0], `"size":"10"`) {
		t.Errorf("applied %q, want once, with what server says by now", applied)
	}
}

// keyed renders a key by name, so that changing the name drops a key, on both planes.
const keyed = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      size: string
      key: string
      extra: string
  resources:
  - id: server
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: server, namespace: PROVIDER}
      data: "${{schema.spec.key: schema.spec.size}}"
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: config, namespace: CONSUMER}
      data: "${{schema.spec.key: schema.spec.size}}"
`

func TestKeyThatIsNoLongerRenderedDisappearsOnEachPlane(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "before"))
	f.write()
	for _, node := range []string{"server", "config"} {
		child := f.child(node)
		child.Data["theirs"] = "kept"
		if _, err := f.client.CoreV1().ConfigMaps(child.Namespace).Update(t.Context(), child, metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"after", "later"} {
		f.change(map[string]any{"key": key})
		f.write()
		for _, node := range []string{"server", "config"} {
			if got, want := f.child(node).Data, map[string]string{key: "1", "theirs": "kept"}; !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", node, got, want)
			}
		}
	}
}

func TestDriftIsRepaired(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	f.write()
	config, server := f.child("config"), f.child("server")
	config.Data["k"] = "tampered"
	if _, err := f.client.CoreV1().ConfigMaps(config.Namespace).Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.client.CoreV1().ConfigMaps(server.Namespace).Delete(t.Context(), server.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	withoutUID := false
	f.store.before = func(instance *unstructured.Unstructured) {
		withoutUID = withoutUID || rows(t, instance)["server"][0].UID == ""
	}
	result := f.apply()
	if got := f.child("config").Data["k"]; got != "1" {
		t.Errorf("config says %s", got)
	}
	if again := f.child("server"); again.UID == server.UID || rows(t, result.Instance)["server"][0].UID != again.UID {
		t.Errorf("server %s was not replaced, or its UID not recorded", again.UID)
	}
	if !withoutUID {
		t.Error("the old UID was not taken out of the inventory before the child was written anew")
	}
}

func TestChildThatChangesMeanwhileIsPlannedAgain(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "before"))
	f.write()
	f.change(map[string]any{"key": "after"})
	interfered := 0
	f.consumerProxy.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" && interfered < 2 {
			interfered++
			patch := []byte(`{"data":{"theirs":"` + strings.Repeat("x", interfered) + `"}}`)
			if _, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).Patch(context.Background(), "config", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	f.write()
	if got, want := f.child("config").Data, map[string]string{"after": "1", "theirs": "xx"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestForeignObjectIsNeitherTakenNorChanged(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	theirs := f.create(f.consumerNamespace, "config")
	if status := f.refused(); status.Code != http.StatusConflict || status.Details.Causes[0].Field != "resources[config]" {
		t.Errorf("got %d %+v", status.Code, status.Details.Causes)
	}
	// Once stored, for whatever reason, it is a condition.
	f.store.put(f.store.get())
	result, err := f.composer.Apply(t.Context(), f.request(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	expectStates(t, result.Instance, map[string]v1alpha1.State{"config": v1alpha1.StateFailed, "server": v1alpha1.StateReady})
	if result.Err == nil || len(result.Warnings) != 1 || condition(t, result.Instance, v1alpha1.ConditionSynced) != "False" {
		t.Errorf("err %v, warnings %q", result.Err, result.Warnings)
	}
	now, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).Get(t.Context(), "config", metav1.GetOptions{})
	if err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was changed: %v", err)
	}
	// And it survives the instance.
	f.teardown()
	if _, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).Get(t.Context(), "config", metav1.GetOptions{}); err != nil {
		t.Errorf("it was deleted with the instance: %v", err)
	}
}

func TestCopiedMarksProveNothing(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	forged := f.create(f.consumerNamespace, "config")
	forged.Labels = map[string]string{
		v1alpha1.LabelInstanceUID: string(f.store.get().GetUID()), v1alpha1.LabelConsumerCluster: consumer.String(),
	}
	if _, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).Update(t.Context(), forged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if status := f.refused(); status.Code != http.StatusConflict {
		t.Errorf("code %d, want 409", status.Code)
	}
}

func TestObjectThatTookAChildsNameIsSparedWhateverItsMarks(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	f.write()
	configs := f.client.CoreV1().ConfigMaps(f.consumerNamespace)
	forged := f.child("config")
	if err := configs.Delete(t.Context(), forged.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	forged.ResourceVersion, forged.UID, forged.Data = "", "", map[string]string{"theirs": "1"}
	theirs, err := configs.Create(t.Context(), forged, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		result, err := f.composer.Apply(t.Context(), f.request(), f.store)
		if err != nil {
			t.Fatal(err)
		}
		expectStates(t, result.Instance, map[string]v1alpha1.State{"config": v1alpha1.StateFailed, "server": v1alpha1.StateReady})
	}
	if !f.teardown() {
		t.Error("teardown waits for what isn't the instance's")
	}
	if now, err := configs.Get(t.Context(), forged.Name, metav1.GetOptions{}); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was changed or deleted: %v", err)
	}
}

func TestMarksThatWereTakenOffArePutBack(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	f.write()
	for _, labels := range []map[string]string{{v1alpha1.LabelInstanceUID: string(f.store.get().GetUID())}, nil} {
		config := f.child("config")
		config.Labels = labels
		if _, err := f.client.CoreV1().ConfigMaps(config.Namespace).Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.apply()
		if got := f.child("config"); got.UID != config.UID || got.Labels[v1alpha1.LabelConsumerCluster] != consumer.String() {
			t.Errorf("%s has labels %v", got.UID, got.Labels)
		}
	}
}

func TestAdoptionTakesWhatNobodyOwns(t *testing.T) {
	f := newFixture(t, strings.ReplaceAll(keyed, "- id: config\n", "- id: config\n    conflictPolicy: Adopt\n"), spec("key", "k"))
	theirs := f.create(f.consumerNamespace, "config")
	admitted := f.admit()
	if row := rows(t, admitted.Instance)["config"][0]; row.UID != "" {
		t.Errorf("recorded as written before it is taken over: %+v", row)
	}
	result := f.apply()
	adopted := f.child("config")
	if adopted.UID != theirs.UID || !maps.Equal(adopted.Data, map[string]string{"k": "1", "theirs": "1"}) {
		t.Errorf("got %s with %v", adopted.UID, adopted.Data)
	}
	if row := rows(t, result.Instance)["config"][0]; row.UID != theirs.UID {
		t.Errorf("row %+v", row)
	}
	// Another instance can't take it in turn.
	other := f.store.get()
	other.SetUID("another")
	_, err := f.composer.Preflight(t.Context(), compose.Request{Program: f.program, Consumer: consumer, Instance: withoutStatus(other)})
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
}

func withoutStatus(instance *unstructured.Unstructured) *unstructured.Unstructured {
	out := instance.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "status")
	return out
}

func TestWhatWasWrittenBeforeACrashIsFound(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.admit()
	intended := f.store.get()
	f.apply()
	before := f.child("config").UID
	f.store.put(intended) // the crash: children are written, status is not
	result := f.apply()
	if after := f.child("config").UID; after != before {
		t.Error("the child was written a second time")
	}
	expectStates(t, result.Instance, map[string]v1alpha1.State{
		"server": v1alpha1.StateReady, "config": v1alpha1.StateReady, "access": v1alpha1.StateReady,
	})
}

func TestPlaneThatIsCutOffHoldsNothingElseBackAndForgetsNothing(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	f.write()
	before := rows(t, f.store.get())["server"][0].UID
	f.change(map[string]any{"key": "after"})
	f.admit()
	f.providerProxy.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no upstream", http.StatusBadGateway)
		return true
	})
	result, err := f.composer.Apply(t.Context(), f.request(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	expectStates(t, result.Instance, map[string]v1alpha1.State{"server": v1alpha1.StateFailed, "config": v1alpha1.StateReady})
	if result.Err == nil || rows(t, result.Instance)["server"][0].UID != before {
		t.Errorf("err %v, row %+v", result.Err, rows(t, result.Instance)["server"])
	}
	f.providerProxy.Fail(nil)
	f.apply()
	if _, ok := f.child("server").Data["after"]; !ok {
		t.Error("not finished once the plane is back")
	}
}

// filled waits for a value that a controller fills in.
const filled = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      size: string
      key: string
      extra: string
    status:
      address: ${space.status.loadBalancer.ingress[0].ip}
  resources:
  - id: space
    target: provider
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: space, namespace: PROVIDER}
      spec:
        type: LoadBalancer
        ports: [{port: 80}]
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: config, namespace: CONSUMER}
      data:
        address: ${space.status.loadBalancer.ingress[0].ip}
`

func TestValueThatAControllerHasYetToFillInIsAwaited(t *testing.T) {
	f := newFixture(t, filled, spec())
	result := f.write()
	row := rows(t, result.Instance)["config"][0]
	if row.State != v1alpha1.StatePending || !strings.HasPrefix(row.WaitingFor, "space.status.loadBalancer") {
		t.Errorf("config: %+v", row)
	}
	if len(f.configMaps(f.consumerNamespace)) != 0 {
		t.Error("written without its value")
	}
	services := f.client.CoreV1().Services(f.providerNamespace)
	list, err := services.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, %d services", err, len(list.Items))
	}
	list.Items[0].Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	if _, err := services.UpdateStatus(t.Context(), &list.Items[0], metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	recorded := false
	f.store.before = func(instance *unstructured.Unstructured) {
		recorded = recorded || len(f.configMaps(f.consumerNamespace)) == 0 && rows(t, instance)["config"][0].Name != ""
	}
	result = f.apply()
	if got := f.child("config").Data["address"]; got != "192.0.2.1" {
		t.Errorf("address %q", got)
	}
	if got, _, _ := unstructured.NestedString(result.Instance.Object, "status", "address"); got != "192.0.2.1" {
		t.Errorf("status.address %q", got)
	}
	if !recorded {
		t.Error("written before it was recorded")
	}
}

const nested = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      size: string
      key: string
      extra: string
  resources:
  - id: space
    target: provider
    template:
      apiVersion: v1
      kind: Namespace
      metadata: {name: space}
  - id: inside
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: inside, namespace: "${space.metadata.name}"}
`

func TestChildOfANamespaceOfTheSamePlanIsUnverifiedAndApplied(t *testing.T) {
	f := newFixture(t, nested, spec())
	result := f.admit()
	expectStates(t, result.Instance, map[string]v1alpha1.State{"space": v1alpha1.StatePending, "inside": v1alpha1.StateUnverified})
	if len(result.Warnings) != 1 {
		t.Errorf("warnings %q", result.Warnings)
	}
	result = f.apply()
	expectStates(t, result.Instance, map[string]v1alpha1.State{"space": v1alpha1.StateReady, "inside": v1alpha1.StateReady})
}

func TestChildThatIsBeingDeletedIsReplacedOnceItIsGone(t *testing.T) {
	f := newFixture(t, keyed, spec("key", "k"))
	f.write()
	config := f.child("config")
	f.hold(config, "example.org/hold")
	if err := f.client.CoreV1().ConfigMaps(config.Namespace).Delete(t.Context(), config.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.change(map[string]any{"key": "after"})
	result := f.write()
	if row := rows(t, result.Instance)["config"][0]; row.State != v1alpha1.StatePending || row.UID != config.UID {
		t.Errorf("%+v", row)
	}
	if got := condition(t, result.Instance, v1alpha1.ConditionReady); got != "False" {
		t.Errorf("Ready is %s", got)
	}
	f.hold(f.child("config"))
	f.apply()
	if again := f.child("config"); again.UID == config.UID || again.Data["after"] != "1" {
		t.Errorf("got %s with %v", again.UID, again.Data)
	}
}

// hold sets a child's finalizers.
func (f *fixture) hold(child *corev1.ConfigMap, finalizers ...string) {
	f.Helper()
	child.Finalizers = finalizers
	if _, err := f.client.CoreV1().ConfigMaps(child.Namespace).Update(f.Context(), child, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}
