package compose_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
)

// listed has a child per item, on each plane.
const listed = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      names: "[]string"
  resources:
  - id: server
    target: provider
    forEach:
    - name: ${schema.spec.names}
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "server-${name}", namespace: PROVIDER}
  - id: config
    forEach:
    - name: ${schema.spec.names}
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "config-${name}", namespace: CONSUMER}
`

func names(list ...any) map[string]any { return map[string]any{"names": list} }

// prune composes the stored instance and prunes it, as the loop does.
func (f *fixture) prune() *compose.Result {
	f.Helper()
	applied := f.apply()
	request := f.request()
	request.Instance = applied.Instance
	result, err := f.composer.Prune(f.Context(), request, applied.Plan, f.store)
	if err != nil {
		f.Fatal(err)
	}
	return result
}

func (f *fixture) teardown() bool {
	f.Helper()
	done, result, err := f.composer.Teardown(f.Context(), f.request(), f.store)
	if err != nil {
		f.Fatal(err)
	}
	if result.Instance == nil {
		f.Fatal("no instance in the result")
	}
	return done
}

func TestShrunkenListIsPrunedOnEachPlane(t *testing.T) {
	f := newFixture(t, listed, names("a", "b", "c"))
	f.write()
	f.change(names("b"))
	f.write()
	result := f.prune()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	if got := f.configMaps(f.consumerNamespace); !slices.Equal(got, []string{"config-b"}) {
		t.Errorf("consumer has %v", got)
	}
	if got := f.configMaps(f.providerNamespace); len(got) != 1 || !strings.HasPrefix(got[0], "server-b") {
		t.Errorf("provider has %v", got)
	}
	for node, list := range rows(t, result.Instance) {
		if len(list) != 1 || list[0].State != v1alpha1.StateReady {
			t.Errorf("%s: %+v", node, list)
		}
	}
	if got := condition(t, result.Instance, v1alpha1.ConditionProgressing); got != "False" {
		t.Errorf("Progressing is %s", got)
	}
	// An empty list leaves a row that says so.
	f.change(map[string]any{"names": []any{}})
	f.write()
	if result = f.prune(); len(rows(t, result.Instance)["config"]) != 1 {
		t.Errorf("%+v", rows(t, result.Instance))
	}
	f.nothingWritten()
}

func TestChildOfADroppedNodeIsPruned(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.write()
	f.program = f.compile(twoPlanes[:strings.Index(twoPlanes, "  - id: access")])
	result := f.prune()
	if _, err := f.client.CoreV1().Secrets(f.consumerNamespace).Get(t.Context(), "db-access", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
	expectStates(t, result.Instance, map[string]v1alpha1.State{"server": v1alpha1.StateReady, "config": v1alpha1.StateReady})
}

func TestPruneSparesWhatTookAChildsName(t *testing.T) {
	f := newFixture(t, listed, names("a", "b"))
	f.write()
	configs := f.client.CoreV1().ConfigMaps(f.consumerNamespace)
	if err := configs.Delete(t.Context(), "config-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := f.create(f.consumerNamespace, "config-a")
	f.change(names("b"))
	f.write()
	result := f.prune()
	if now, err := configs.Get(t.Context(), "config-a", metav1.GetOptions{}); err != nil || now.UID != theirs.UID {
		t.Errorf("it was deleted: %v", err)
	}
	if got := rows(t, result.Instance)["config"]; len(got) != 1 {
		t.Errorf("rows %+v", got)
	}
}

func TestOrphanKeepsTheChildWithoutMarks(t *testing.T) {
	f := newFixture(t, strings.ReplaceAll(listed, "- id: config\n", "- id: config\n    deletionPolicy: Orphan\n"), names("a", "b"))
	f.write()
	f.change(names("b"))
	f.write()
	f.prune()
	kept, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).Get(t.Context(), "config-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key := range kept.Labels {
		if strings.HasPrefix(key, v1alpha1.Prefix) {
			t.Errorf("still marked: %s", key)
		}
	}
	if len(kept.OwnerReferences) != 0 || kept.Annotations[v1alpha1.AnnotationDesiredHash] != "" {
		t.Errorf("still owned: %+v", kept.ObjectMeta)
	}
}

func TestPruneStopsWhereSomebodyHasWrittenSince(t *testing.T) {
	f := newFixture(t, listed, names("a", "b"))
	f.write()
	f.change(names("b"))
	applied := f.write()
	request := f.request()
	f.change(names("a", "b"))
	if _, err := f.composer.Prune(t.Context(), request, applied.Plan, f.store); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
	if got := f.configMaps(f.consumerNamespace); len(got) != 2 {
		t.Errorf("consumer has %v", got)
	}
}

func TestTeardownGoesInReverseAndAwaitsEachWave(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.write()
	config := f.child("config")
	f.hold(config, "example.org/hold")

	if f.teardown() {
		t.Fatal("done although a child is held")
	}
	if _, err := f.client.CoreV1().Secrets(f.consumerNamespace).Get(t.Context(), "db-access", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the last wave is not gone: %v", err)
	}
	if f.child("config").DeletionTimestamp == nil || f.child("server").DeletionTimestamp != nil {
		t.Error("the wave before is not being deleted, or the first one already is")
	}
	left := rows(t, f.store.get())
	if row := left["config"][0]; row.State != v1alpha1.StateDeleting || !strings.Contains(row.Message, "example.org/hold") {
		t.Errorf("%+v", row)
	}
	if len(left) != 2 {
		t.Errorf("left: %+v", left)
	}
	if f.teardown() || f.child("server").DeletionTimestamp != nil {
		t.Error("went on although the wave before is not gone")
	}
	f.hold(f.child("config"))
	if !f.teardown() {
		t.Error("not done although nothing holds it")
	}
	f.nothingWritten()
	if !f.teardown() {
		t.Error("not done the second time")
	}
}

func TestTeardownForgetsNothingOfAPlaneThatIsLost(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.write()
	f.consumerProxy.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"User \"krop\" cannot get resource \"secrets\" in API group \"\": access denied"}`))
		return true
	})
	done, result, err := f.composer.Teardown(t.Context(), f.request(), f.store)
	if err != nil || done || result.Err == nil {
		t.Fatalf("done %v, %v, result %v", done, err, result)
	}
	if row := rows(t, result.Instance)["access"][0]; row.UID == "" || !strings.Contains(row.Message, "accept the permission claim") {
		t.Errorf("%+v", row)
	}
	if f.child("server").DeletionTimestamp != nil {
		t.Error("deleted before what depends on it")
	}
}

func TestTeardownAwaitsAChildThatAClaimDoesNotShowYet(t *testing.T) {
	f := newFixture(t, listed, names("a"))
	f.write()
	f.consumerProxy.Fail(func(w http.ResponseWriter, request *http.Request) bool {
		if request.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,` +
			`"message":"configmaps \"config-a\" not found","details":{"name":"config-a","kind":"configmaps"}}`))
		return true
	})
	if f.teardown() {
		t.Fatal("done although a child exists")
	}
	if row := rows(t, f.store.get())["config"]; len(row) != 1 || row[0].State != v1alpha1.StateDeleting {
		t.Errorf("the child is no longer listed: %+v", row)
	}
	f.consumerProxy.Fail(nil)
	if !f.teardown() {
		t.Error("not done although the child is shown again")
	}
	f.nothingWritten()
}

func TestTeardownNeedsNoNodesOfTheProgram(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.write()
	f.program.Nodes, f.program.Graph = nil, nil
	if !f.teardown() {
		t.Error("not done")
	}
	f.nothingWritten()
}

func TestTeardownOfAnOrphaningDeletionKeepsTheConsumersChildrenAlone(t *testing.T) {
	f := newFixture(t, listed, names("a"))
	f.write()
	request := f.request()
	request.Instance.SetAnnotations(map[string]string{v1alpha1.AnnotationOrphanChildren: "true"})
	if done, _, err := f.composer.Teardown(t.Context(), request, f.store); err != nil || !done {
		t.Fatalf("done %v, %v", done, err)
	}
	if got := f.configMaps(f.providerNamespace); slices.ContainsFunc(got, func(name string) bool { return name != rootCA }) {
		t.Errorf("left in the provider's workspace: %v", got)
	}
	kept, err := f.client.CoreV1().ConfigMaps(f.consumerNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "!" + v1alpha1.LabelInstanceUID})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(kept.Items, func(c corev1.ConfigMap) bool { return len(c.OwnerReferences) == 0 && c.Name == "config-a" }) {
		t.Errorf("the consumer has %v", kept.Items)
	}
}

// rootCA is the ConfigMap that a controller puts into every namespace, where one runs.
const rootCA = "kube-root-ca.crt"

func TestAKindThatIsNotServedIsNoProofThatAChildIsGone(t *testing.T) {
	f := newFixture(t, listed, names("a"))
	f.write()
	f.providerProxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/configmaps") { // as if its version had been dropped
			http.NotFound(w, r)
			return true
		}
		return false
	})
	if f.teardown() {
		t.Error("done although the provider's child is still there")
	}
	if result, err := f.composer.Apply(t.Context(), f.request(), f.store); err != nil || result.Err == nil || rows(t, result.Instance)["server"][0].UID == "" {
		t.Errorf("a child that can't be read is forgotten: %v, %v", result, err)
	}
	f.providerProxy.Fail(nil)
	if !f.teardown() {
		t.Error("not done")
	}
	f.nothingWritten()
}
