package gc_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"context"
	"sync"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/gc"
)

// hold puts finalizers on a child, as its own controllers might; release takes them off.
func (w *world) hold(row v1alpha1.ComposedResource) {
	w.finalizers(row, `["example.org/slow","example.org/slower"]`)
}
func (w *world) release(row v1alpha1.ComposedResource) { w.finalizers(row, `null`) }

// passAfter takes one of the finalizers off a child, and waits until the loop has seen that: so there was a whole
// pass since.
func (w *world) passAfter(row v1alpha1.ComposedResource) {
	w.t.Helper()
	eventually(w.t, "the loop says what it waits for", func() bool {
		now, _ := w.row("db", row.ID)
		return strings.Contains(now.Message, "[example.org/slow ")
	})
	w.finalizers(row, `["example.org/slower"]`)
	eventually(w.t, "the loop has looked again", func() bool {
		now, _ := w.row("db", row.ID)
		return strings.Contains(now.Message, "[example.org/slower]")
	})
}

func (w *world) finalizers(row v1alpha1.ComposedResource, value string) {
	w.t.Helper()
	_, err := w.admin.Resource(row.GVR()).Namespace(row.Namespace).Patch(w.t.Context(), row.Name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":`+value+`}}`), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// ready is a world with one instance whose children are all there.
func ready(t *testing.T) (w *world, server, config v1alpha1.ComposedResource, stop func()) {
	t.Helper()
	w = newWorld(t)
	w.publish(w.compile(serverNode + configNode))
	_, stop = w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3)})
	w.become("db", "a")
	eventually(t, "all children are there", func() bool { return condition(w.get("db"), "Ready") == "True" })
	_, server = w.child("db", "server")
	_, config = w.child("db", "config")
	return w, server, config, stop
}

func TestDeleteWaitsForChildrenInReverseOrder(t *testing.T) {
	w, server, config, _ := ready(t)
	w.hold(config)
	w.hold(server)
	w.delete("db")
	eventually(t, "what depends on the server is being deleted", func() bool {
		object := w.object(config)
		return object != nil && object.GetDeletionTimestamp() != nil
	})
	w.passAfter(config)
	if object := w.object(server); object == nil || object.GetDeletionTimestamp() != nil {
		t.Fatal("the server goes before what depends on it")
	}
	w.release(config)
	eventually(t, "the server is being deleted", func() bool { return w.object(server).GetDeletionTimestamp() != nil })
	w.passAfter(server)
	if w.get("db") == nil {
		t.Fatal("the instance goes before its children")
	}
	w.release(server)
	eventually(t, "the instance goes", func() bool { return w.get("db") == nil })
}

func TestACrashDuringTeardownIsFinishedByAnotherLoop(t *testing.T) {
	w, server, config, stop := ready(t)
	w.hold(config)
	w.delete("db")
	eventually(t, "teardown has begun", func() bool { return w.object(config).GetDeletionTimestamp() != nil })
	stop()
	w.release(config) // nobody watches
	w.loop(gc.Config{})
	eventually(t, "everything is gone", func() bool { return w.get("db") == nil && w.object(server) == nil && w.object(config) == nil })
}

func TestARevokedClaimIsNotBelievedToBeADeletion(t *testing.T) {
	w, server, config, _ := ready(t)
	isConfig := func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/services/apiexport/") && strings.Contains(r.URL.Path, "/configmaps")
	}
	var gets atomic.Int64
	// What kcp does: lists lack the objects, watches end, gets are forbidden.
	w.proxy.Fail(func(response http.ResponseWriter, r *http.Request) bool {
		if !isConfig(r) {
			return false
		}
		response.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/configmaps") && r.Method == http.MethodGet {
			_, _ = response.Write([]byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`))
			return true
		}
		gets.Add(1)
		response.WriteHeader(http.StatusForbidden)
		_, _ = response.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"configmaps is forbidden: User \"krop\" cannot get resource \"configmaps\" in API group \"\": failed to find suitable reason to allow access in APIBinding"}`))
		return true
	})
	w.proxy.CloseClientConnections()
	w.delete("db")
	eventually(t, "the failure is told", func() bool { row, _ := w.row("db", "config"); return row.Message != "" })
	before := gets.Load()
	eventually(t, "it is tried again, twice", func() bool { return gets.Load() >= before+2 })
	if w.get("db") == nil || w.object(server) == nil || w.object(server).GetDeletionTimestamp() != nil {
		t.Fatal("teardown went on although nothing is known of a child")
	}
	w.proxy.Fail(nil)
	eventually(t, "with the claim accepted again, everything goes", func() bool {
		return w.get("db") == nil && w.object(server) == nil && w.object(config) == nil
	})
}

// bindings is what is known of bindings.
type bindings struct {
	mutex   sync.Mutex
	changed func(v1alpha1.ExportKey, logicalcluster.Name, bool)
	gone    bool
}

func (b *bindings) Subscribe(changed func(v1alpha1.ExportKey, logicalcluster.Name, bool)) {
	b.changed = changed
}

func (b *bindings) Holders(context.Context, v1alpha1.ExportKey) (holders sets.Set[logicalcluster.Name], known bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.gone {
		return nil, true
	}
	return sets.New(consumer), true
}

func TestUnbindReclaimsTheProvidersChildrenAndLeavesTheConsumersOwn(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + configNode))
	known := &bindings{}
	w.loop(gc.Config{Bindings: known})
	w.create("db", map[string]any{"size": int64(3)})
	w.become("db", "a")
	eventually(t, "all children are there", func() bool { return condition(w.get("db"), "Ready") == "True" })
	_, server := w.child("db", "server")
	_, config := w.child("db", "config")

	// Without a binding kcp forbids everything in the workspace.
	w.proxy.Fail(func(response http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/services/apiexport/") {
			return false
		}
		response.WriteHeader(http.StatusForbidden)
		return true
	})
	known.mutex.Lock()
	known.gone = true
	known.mutex.Unlock()
	known.changed(export, consumer, false)
	eventually(t, "provider's child and record are gone", func() bool { return w.object(server) == nil && w.get("db") == nil })
	if w.object(config) == nil {
		t.Error("a child was deleted in a workspace that krop has no access to")
	}
}

func TestOrphansOfThePastAreSweptAndLiveChildrenAreNot(t *testing.T) {
	w, server, _, stop := ready(t)
	stop()
	live := w.object(server)
	orphan := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infra.example.org/v1", "kind": "Server",
		"metadata": map[string]any{"name": "orphan", "namespace": w.namespace},
		"spec":     map[string]any{"size": int64(1)},
	}}
	labels := live.GetLabels()
	labels[v1alpha1.LabelInstanceUID] = "00000000-0000-0000-0000-000000000000"
	orphan.SetLabels(labels)
	_, err := w.admin.Resource(servers).Namespace(w.namespace).Apply(t.Context(), "orphan", orphan,
		metav1.ApplyOptions{FieldManager: "krop-" + labels[v1alpha1.LabelInstanceUID]})
	if err != nil {
		t.Fatal(err)
	}
	copied := orphan.DeepCopy()
	copied.SetName("copy")
	if _, err := w.admin.Resource(servers).Namespace(w.namespace).Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	exists := func(name string) bool {
		_, err := w.admin.Resource(servers).Namespace(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	}

	w.loop(gc.Config{})
	eventually(t, "the orphan is swept", func() bool { return !exists("orphan") })
	if !exists("copy") {
		t.Error("somebody's copy of a child was swept")
	}
	if object := w.object(server); object == nil || object.GetUID() != live.GetUID() {
		t.Error("a live instance's child was swept")
	}
}
