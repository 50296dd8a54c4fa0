package kind

import (
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
)

// acceptances is what bindings say of claims, of a cluster.
type acceptances struct {
	sync.Mutex
	byCluster map[logicalcluster.Name]map[string]string
}

func (a *acceptances) accept(cluster logicalcluster.Name, labels map[string]string) {
	a.Lock()
	defer a.Unlock()
	a.byCluster = map[logicalcluster.Name]map[string]string{cluster: labels}
}

func (a *acceptances) labels(cluster logicalcluster.Name, _ schema.GroupResource, labels map[string]string) map[string]string {
	a.Lock()
	defer a.Unlock()
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, claimPrefix) })
	maps.Copy(out, a.byCluster[cluster])
	return out
}

func newClaimedStore(t *testing.T) (*Store, *acceptances) {
	t.Helper()
	accepted := &acceptances{}
	store, err := NewStore(newKind(t, definition(t, newGroup())), StoreOptions{Backend: backend, ExportCluster: provider, ClaimLabels: accepted.labels})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	if err := store.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, accepted
}

// TestEveryWriteStampsLabelsOfClaims changes what is accepted before each write, and looks at what is stored.
func TestEveryWriteStampsLabelsOfClaims(t *testing.T) {
	store, accepted := newClaimedStore(t)
	seen := &warnings{}
	client := serve(t, store).client(t, one, seen).Namespace(namespace)
	ctx := in(t.Context(), one, namespace)
	manager := metav1.ApplyOptions{FieldManager: "someone", Force: true}
	mine := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"app": "mine"}) }

	for _, write := range []struct {
		by string
		do func() (*unstructured.Unstructured, error)
	}{
		{"create", func() (*unstructured.Unstructured, error) {
			return client.Create(t.Context(), widget(store.Kind, "a", mine), metav1.CreateOptions{})
		}},
		{"update", func() (*unstructured.Unstructured, error) {
			return client.Update(t.Context(), get(t, ctx, store, "a"), metav1.UpdateOptions{})
		}},
		{"apply", func() (*unstructured.Unstructured, error) {
			return client.Apply(t.Context(), "a", widget(store.Kind, "a", mine), manager)
		}},
		{"status", func() (*unstructured.Unstructured, error) {
			object := get(t, ctx, store, "a").DeepCopy()
			with("done", "status", "phase")(object)
			updated, _, err := store.Status.Update(ctx, "a", rest.DefaultUpdatedObjectInfo(object), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			return asUnstructured(updated), err
		}},
		{"krop", func() (*unstructured.Unstructured, error) {
			return update(t, WithInternal(ctx), store, get(t, ctx, store, "a").DeepCopy()), nil
		}},
	} {
		want := map[string]string{"app": "mine", claimPrefix + "export": write.by}
		accepted.accept(one, map[string]string{claimPrefix + "export": write.by})
		written, err := write.do()
		if err != nil {
			t.Fatalf("%s: %v", write.by, err)
		}
		if got := get(t, ctx, store, "a").GetLabels(); !maps.Equal(got, want) {
			t.Errorf("%s: stored labels %v, want %v", write.by, got, want)
		}
		if written.GetGeneration() != 1 {
			t.Errorf("%s: generation %d, although the spec is what it was", write.by, written.GetGeneration())
		}
		for _, entry := range written.GetManagedFields() {
			if strings.Contains(entry.FieldsV1.GetRawString(), claimPrefix) {
				t.Errorf("%s: %s owns a label of a claim: %s", write.by, entry.Manager, entry.FieldsV1.GetRawString())
			}
		}
	}
	if len(seen.texts) > 0 {
		t.Errorf("users are warned of labels that they didn't write: %q", seen.texts)
	}
}

// TestLabelsThatWereReadEarlierAreNobodys sends back an object that was read before a claim was revoked.
func TestLabelsThatWereReadEarlierAreNobodys(t *testing.T) {
	store, accepted := newClaimedStore(t)
	client := serve(t, store).client(t, one, nil).Namespace(namespace)
	accepted.accept(one, map[string]string{claimPrefix + "export": "old"})
	read, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	accepted.accept(one, nil)
	update(t, WithInternal(in(t.Context(), one, namespace)), store, read.DeepCopy())

	back, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": read.GetLabels()}})
	if err != nil {
		t.Fatal(err)
	}
	written, err := client.Patch(t.Context(), "a", types.MergePatchType, back, metav1.PatchOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	if len(written.GetLabels()) > 0 {
		t.Errorf("labels %v", written.GetLabels())
	}
	for _, entry := range written.GetManagedFields() {
		if strings.Contains(entry.FieldsV1.GetRawString(), claimPrefix) {
			t.Errorf("%s owns %s", entry.Manager, entry.FieldsV1.GetRawString())
		}
	}
}

func asUnstructured(object any) *unstructured.Unstructured {
	out, _ := object.(*unstructured.Unstructured)
	return out
}
