package gc_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/gc"
)

func TestAStatusChangeOnOnePlaneReachesTheOtherAndTheInstance(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + configNode))
	w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3)})
	if server, _ := w.child("db", "server"); server == nil {
		t.Fatal("the request has not written the server")
	}
	if config, row := w.child("db", "config"); config != nil || row.WaitingFor != "server.status.endpoint" {
		t.Fatalf("config waits for %q", row.WaitingFor)
	}
	w.become("db", "db.example.org:5432")
	eventually(t, "the instance has the endpoint and is ready", func() bool {
		db := w.get("db")
		return endpointOf(db) == "db.example.org:5432" && condition(db, "Ready") == "True"
	})
	config, _ := w.child("db", "config")
	if endpoint, _, _ := unstructured.NestedString(config.Object, "data", "endpoint"); endpoint != "db.example.org:5432" {
		t.Errorf("the consumer's config says %q", endpoint)
	}
}

func TestDriftIsRepairedByEvent(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + configNode))
	w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3)})
	w.become("db", "a")
	eventually(t, "all children are there", func() bool { config, _ := w.child("db", "config"); return config != nil })

	_, server := w.child("db", "server")
	_, err := w.admin.Resource(servers).Namespace(server.Namespace).Patch(t.Context(), server.Name, types.MergePatchType,
		[]byte(`{"spec":{"size":99}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "an edited child is as it was", func() bool {
		size, _, _ := unstructured.NestedInt64(w.object(server).Object, "spec", "size")
		return size == 3
	})

	_, config := w.child("db", "config")
	if err := w.admin.Resource(configMaps).Namespace(config.Namespace).Delete(t.Context(), config.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted child is back, and recorded", func() bool {
		object, row := w.child("db", "config")
		return object != nil && object.GetUID() != config.UID && row.UID == object.GetUID()
	})

	_, err = w.admin.Resource(servers).Namespace(server.Namespace).Patch(t.Context(), server.Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+v1alpha1.LabelInstanceUID+`":null}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "an instance tells of a label that was taken off, if it isn't put back", func() bool {
		row, _ := w.row("db", "server")
		return row.State == v1alpha1.StateFailed || w.object(server).GetLabels()[v1alpha1.LabelInstanceUID] != ""
	})
}

func TestAnotherLoopFinishesWhatACrashLeft(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + configNode))
	w.store("db")
	if _, ok := w.row("db", "server"); ok {
		t.Fatal("the request did more than it should in this test")
	}
	_, stop := w.loop(gc.Config{})
	eventually(t, "the server is written", func() bool { server, _ := w.child("db", "server"); return server != nil })
	stop()
	w.become("db", "a") // nobody watches
	w.loop(gc.Config{})
	eventually(t, "the rest is written", func() bool { return condition(w.get("db"), "Ready") == "True" })
}

func TestASwappedProgramConverges(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + configNode + extraNode))
	loop, _ := w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3), "extra": true})
	w.become("db", "a")
	eventually(t, "all children are there", func() bool { return condition(w.get("db"), "Ready") == "True" })
	_, extra := w.child("db", "extra")
	if extra.Name == "" {
		t.Fatal("no extra child")
	}

	program := w.compile(serverNode + configNode + `
  - id: more
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}", namespace: NAMESPACE}
      data: {from: "${config.data.endpoint}"}
`)
	w.publish(program)
	loop.Serve(export, program, w.served.Records)
	eventually(t, "what the new program adds is there", func() bool { more, _ := w.child("db", "more"); return more != nil })
	eventually(t, "what it drops is gone, from its plane and from the inventory", func() bool {
		_, listed := w.row("db", "extra")
		return w.object(extra) == nil && !listed
	})
}

func TestAnEditThatExcludesANodePrunesItsChild(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + extraNode))
	w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3), "extra": true})
	_, extra := w.child("db", "extra")
	if w.object(extra) == nil {
		t.Fatal("no extra child")
	}
	w.update("db", false)
	eventually(t, "the child is pruned", func() bool { return w.object(extra) == nil })
}

func TestAnErrorThatComesLateReachesTheInstancesStatus(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(serverNode + `
  - id: number
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}", namespace: NAMESPACE}
      data: {port: "${string(int(server.status.endpoint))}"}
`))
	w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3)})
	w.become("db", "not a number")
	eventually(t, "the failure is in the status", func() bool {
		row, _ := w.row("db", "number")
		return condition(w.get("db"), "Synced") == "False" && row.State == v1alpha1.StateFailed
	})
	w.become("db", "5432")
	eventually(t, "it is over when its cause is", func() bool { return condition(w.get("db"), "Ready") == "True" })
}
