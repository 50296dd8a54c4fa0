package gc_test

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/gc"
)

// readingNodes read a ConfigMap of the instance's name and those with a label, on the consumer's plane, and one on
// the host.
const readingNodes = serverNode + `
  - id: settings
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: "settings-${schema.metadata.name}"}}
  - id: keys
    externalRef:
      apiVersion: v1
      kind: ConfigMap
      metadata: {namespace: NAMESPACE, selector: {matchLabels: {key-of: "${schema.metadata.name}"}}}
  - id: image
    target: host
    externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: "image-${schema.metadata.name}", namespace: NAMESPACE}}
  - id: valued
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-valued"}
      data: {value: "${settings.data.value}"}
  - id: listed
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-listed"}
      data: {keys: "${keys.map(k, k.metadata.name).join(',')}"}
  - id: imaged
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-imaged", namespace: NAMESPACE}
      data: {image: "${image.data.name}"}
`

// write makes a ConfigMap that isn't krop's, as one of the consumer.
func (w *world) write(name string, labels map[string]string, data map[string]any) {
	w.t.Helper()
	if err := w.tryWrite(name, labels, data); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryWrite(name string, labels map[string]string, data map[string]any) error {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	object.SetName(name)
	object.SetLabels(labels)
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationCluster: consumer.String()}) // as kcp does
	_, err := w.admin.Resource(configMaps).Namespace(w.namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
	return err
}

func (w *world) patch(name, patch string) {
	w.t.Helper()
	_, err := w.admin.Resource(configMaps).Namespace(w.namespace).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// gets waits until a child has a value.
func (w *world) gets(name, id, field, want string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%s of %s has %q", id, name, want), func() bool {
		child, _ := w.child(name, id)
		if child == nil {
			return false
		}
		got, _, _ := unstructured.NestedString(child.Object, "data", field)
		return got == want
	})
}

func TestWhatIsOnlyReadIsFollowedByEvent(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(readingNodes))
	w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(3)})
	for _, id := range []string{"valued", "imaged"} {
		if child, row := w.child("db", id); child != nil || row.State != v1alpha1.StatePending {
			t.Fatalf("%s is %s before what it reads is there", id, row.State)
		}
	}
	w.write("settings-db", nil, map[string]any{"value": "v1"})
	w.gets("db", "valued", "value", "v1")
	w.write("image-db", nil, map[string]any{"name": "i1"})
	w.gets("db", "imaged", "image", "i1")
	w.patch("settings-db", `{"data":{"value":"v2"}}`)
	w.gets("db", "valued", "value", "v2")

	w.write("b", map[string]string{"key-of": "db"}, nil)
	w.gets("db", "listed", "keys", "b")
	w.write("a", nil, nil)
	w.patch("a", `{"metadata":{"labels":{"key-of":"db"}}}`)
	w.gets("db", "listed", "keys", "a,b")
	w.patch("b", `{"metadata":{"labels":null}}`)
	w.gets("db", "listed", "keys", "a")

	valued, _ := w.child("db", "valued")
	if err := w.admin.Resource(configMaps).Namespace(w.namespace).Delete(t.Context(), "settings-db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what it made waits again", func() bool { row, _ := w.row("db", "valued"); return row.State == v1alpha1.StatePending })
	w.patch("image-db", `{"data":{"name":"i2"}}`)
	w.gets("db", "imaged", "image", "i2")
	if after, _ := w.child("db", "valued"); after == nil || after.GetResourceVersion() != valued.GetResourceVersion() {
		t.Error("the child was pruned or written")
	}
}

// TestNothingIsMissedWhenReadersAndObjectsComeAtOnce makes each object just when an instance looks for it, the first ones
// before the watch has listed.
func TestNothingIsMissedWhenReadersAndObjectsComeAtOnce(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(readingNodes))
	w.loop(gc.Config{})
	const instances = 20
	var all sync.WaitGroup
	for i := range instances {
		name := fmt.Sprint("db", i)
		all.Go(func() {
			if err := w.tryWrite("settings-"+name, nil, map[string]any{"value": name}); err != nil {
				t.Error(err)
			}
		})
		w.create(name, map[string]any{"size": int64(3)})
	}
	all.Wait()
	for i := range instances {
		name := fmt.Sprint("db", i)
		w.gets(name, "valued", "value", name)
	}
}

// TestAnotherLoopFollowsWhatWasRead has what is read change while no loop runs, and again under a new one.
func TestAnotherLoopFollowsWhatWasRead(t *testing.T) {
	w := newWorld(t)
	w.publish(w.compile(readingNodes))
	_, stop := w.loop(gc.Config{})
	w.write("settings-db", nil, map[string]any{"value": "v1"})
	w.create("db", map[string]any{"size": int64(3)})
	w.gets("db", "valued", "value", "v1")
	stop()
	w.patch("settings-db", `{"data":{"value":"v2"}}`)
	w.loop(gc.Config{})
	w.gets("db", "valued", "value", "v2")
	w.patch("settings-db", `{"data":{"value":"v3"}}`)
	w.gets("db", "valued", "value", "v3")
}
