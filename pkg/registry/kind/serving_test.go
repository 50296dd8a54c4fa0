package kind

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// served is a store of widgets behind handlers, and a client in one cluster.
func served(t *testing.T) (*Store, *server, dynamic.ResourceInterface) {
	t.Helper()
	store := newStore(t, newKind(t, definition(t, newGroup())))
	s := serve(t, store)
	return store, s, s.client(t, one, nil).Namespace(namespace)
}

func TestCreateDefaultsPrunesAndDropsStatus(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a",
		with("x", "spec", "unknown"), with("done", "status", "phase")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := valueAt(t, created, "spec", "size"); got != int64(3) {
		t.Errorf("spec.size is %v", got)
	}
	if got := valueAt(t, created, "spec", "unknown"); got != nil {
		t.Errorf("spec.unknown is %v", got)
	}
	if got := valueAt(t, created, "status"); got != nil {
		t.Errorf("status is %v", got)
	}
	if created.GetGeneration() != 1 || created.GetUID() == "" || created.GetResourceVersion() == "" {
		t.Errorf("metadata %v", created.Object["metadata"])
	}
	if got := created.GetAnnotations()[clusterAnnotation]; got != one.String() {
		t.Errorf("cluster is %q", got)
	}
}

func TestInvalidObjectsAreRefusedByField(t *testing.T) {
	store, _, client := served(t)
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		field  string
	}{
		"wrong type":     {widget(store.Kind, "a", with("big", "spec", "size")), "spec.size"},
		"required":       {widget(store.Kind, "a", with(map[string]any{}, "spec")), "spec.color"},
		"rule":           {widget(store.Kind, "a", with(int64(200), "spec", "size")), "spec"},
		"name":           {widget(store.Kind, "A_"), "metadata.name"},
		"label":          {widget(store.Kind, "a", with("not a value!", "metadata", "labels", "x")), "metadata.labels"},
		"annotation key": {widget(store.Kind, "a", with("v", "metadata", "annotations", "a/b/c")), "metadata.annotations"},
		"duplicate in a list that is a map": {
			widget(store.Kind, "a", with([]any{map[string]any{"name": "p"}, map[string]any{"name": "p"}}, "spec", "ports")),
			"spec.ports[1]",
		},
	} {
		_, err := client.Create(t.Context(), test.object, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !slices.Contains(causes(err), test.field) {
			t.Errorf("%s: %v (causes %v)", name, err, causes(err))
		}
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if got := valueAt(t, created, "spec", "size"); got != int64(3) {
		t.Errorf("the answer has no defaults: %v", got)
	}
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was stored: %v", err)
	}
}

func TestUpdateNeedsTheResourceVersionAndSeesOldValues(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := created.DeepCopy()
	with(int64(5), "spec", "size")(changed)
	updated, err := client.Update(t.Context(), changed, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.GetGeneration() != 2 {
		t.Errorf("generation %d", updated.GetGeneration())
	}
	if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old resourceVersion: %v", err)
	}
	with("blue", "spec", "color")(updated)
	if _, err := client.Update(t.Context(), updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a rule about the old value: %v", err)
	}
}

func TestPatches(t *testing.T) {
	store, _, client := served(t)
	if _, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patched, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"size":7}}`), metav1.PatchOptions{})
	if err != nil || valueAt(t, patched, "spec", "size") != int64(7) {
		t.Errorf("merge: %v %v", patched, err)
	}
	patched, err = client.Patch(t.Context(), "a", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/size","value":8}]`), metav1.PatchOptions{})
	if err != nil || valueAt(t, patched, "spec", "size") != int64(8) {
		t.Errorf("JSON: %v %v", patched, err)
	}
	if _, err = client.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("strategic: %v", err)
	}
}

func TestServerSideApplyTracksOwners(t *testing.T) {
	store, _, client := served(t)
	port := func(name string) func(*unstructured.Unstructured) {
		return with([]any{map[string]any{"name": name, "port": int64(1)}}, "spec", "ports")
	}
	applied, err := client.Apply(t.Context(), "a", widget(store.Kind, "a", with(int64(5), "spec", "size"), port("x")), metav1.ApplyOptions{FieldManager: "first"})
	if err != nil {
		t.Fatal(err)
	}
	other := widget(store.Kind, "a", with(int64(6), "spec", "size"), port("y"))
	if _, err := client.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "second"}); !apierrors.IsConflict(err) {
		t.Fatalf("no conflict: %v", err)
	}
	merged, err := client.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if ports := valueAt(t, merged, "spec", "ports").([]any); len(ports) != 2 {
		t.Errorf("ports weren't merged by name: %v", ports)
	}
	var managers []string
	for _, entry := range merged.GetManagedFields() {
		managers = append(managers, entry.Manager+" "+string(entry.Operation))
		for _, stamped := range []string{"f:" + clusterAnnotation, "f:status"} {
			if strings.Contains(entry.FieldsV1.GetRawString(), stamped) {
				t.Errorf("%s owns %s", entry.Manager, stamped)
			}
		}
	}
	if !slices.Equal(managers, []string{"first Apply", "second Apply"}) {
		t.Errorf("managers %v", managers)
	}
	again, err := client.Apply(t.Context(), "a", other, metav1.ApplyOptions{FieldManager: "second"})
	if err != nil || again.GetResourceVersion() != merged.GetResourceVersion() || applied.GetResourceVersion() == merged.GetResourceVersion() {
		t.Errorf("applying the same again: %v, from %s to %s", err, merged.GetResourceVersion(), again.GetResourceVersion())
	}
}

func TestApplyCreatesOnlyWithAnAuthorizer(t *testing.T) {
	k := newKind(t, definition(t, newGroup()))
	decision, _, err := k.Scope().Authorizer.Authorize(t.Context(), nil)
	if err != nil || decision != 0 {
		t.Errorf("without the server's authorizer: decision %v, error %v", decision, err)
	}
}

func TestStatusIsWrittenThroughItsSubresourceOnly(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	with("done", "status", "phase")(created)
	with(int64(9), "spec", "size")(created)
	written, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if valueAt(t, written, "status", "phase") != "done" || valueAt(t, written, "spec", "size") != int64(3) {
		t.Errorf("after a write of status: %v", written.Object)
	}
	if written.GetGeneration() != 1 {
		t.Errorf("generation %d", written.GetGeneration())
	}
	unstructured.RemoveNestedField(written.Object, "status")
	kept, err := client.Update(t.Context(), written, metav1.UpdateOptions{})
	if err != nil || valueAt(t, kept, "status", "phase") != "done" {
		t.Errorf("after a write without status: %v %v", kept, err)
	}
	with(int64(1), "status", "phase")(kept)
	if _, err := client.UpdateStatus(t.Context(), kept, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a status that doesn't fit: %v", err)
	}
}

func TestGenerateName(t *testing.T) {
	store, _, client := served(t)
	object := widget(store.Kind, "")
	object.SetGenerateName("made-")
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil || !strings.HasPrefix(created.GetName(), "made-") {
		t.Errorf("%v %v", created, err)
	}
}
