package kind

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

const (
	claimLabel = "claimed.internal.apis.kcp.io/abc"
	kropLabel  = v1alpha1.LabelInstanceUID
)

// forged is what a client sends that tries to write everything that isn't its own.
func forged(o *unstructured.Unstructured) {
	o.SetLabels(map[string]string{claimLabel: "forged", kropLabel: "forged", "app": "mine"})
	o.SetAnnotations(map[string]string{clusterAnnotation: "two", v1alpha1.AnnotationConsumerCluster: "two", "note": "mine"})
	o.SetFinalizers([]string{v1alpha1.Finalizer, "example.com/mine"})
}

func TestUsersCannotSetReservedMetadataOnCreate(t *testing.T) {
	store, s, _ := served(t)
	seen := &warnings{}
	client := s.client(t, one, seen).Namespace(namespace)
	created, err := client.Create(t.Context(), widget(store.Kind, "a", forged), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	expectMetadata(t, created, map[string]string{"app": "mine"},
		map[string]string{clusterAnnotation: "one", "note": "mine"}, []string{"example.com/mine"})
	if len(seen.texts) != 3 || !strings.Contains(seen.texts[2], v1alpha1.Finalizer) {
		t.Errorf("warnings %q", seen.texts)
	}
}

func TestConsumerClusterIsNoAnnotationEvenWhereChildrenMayBeMarkedWithIt(t *testing.T) {
	reserved := reservation{allowed: sets.New(v1alpha1.LabelConsumerCluster)}
	object := &unstructured.Unstructured{}
	mark := map[string]string{v1alpha1.LabelConsumerCluster: "two"}
	object.SetLabels(mark)
	object.SetAnnotations(mark)
	reserved.apply(t.Context(), object, nil)
	expectMetadata(t, object, mark, nil, nil)
}

func TestUsersCannotAddChangeOrRemoveReservedMetadata(t *testing.T) {
	store, s, _ := served(t)
	ctx := in(t.Context(), one, namespace)
	create(t, WithInternal(ctx), store, decoded(store.Kind, "a", func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{claimLabel: "stored"})
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredHash: "stored"})
		o.SetFinalizers([]string{"example.com/first", v1alpha1.Finalizer})
	}))
	client := s.client(t, one, &warnings{}).Namespace(namespace)

	for name, change := range map[string]func(*unstructured.Unstructured){
		"added and changed": forged,
		"removed": func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"app": "mine"})
			o.SetAnnotations(map[string]string{"note": "mine"})
			o.SetFinalizers([]string{"example.com/mine"})
		},
	} {
		object, err := client.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(object)
		updated, err := client.Update(t.Context(), object, metav1.UpdateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		finalizers := updated.GetFinalizers()
		slices.Sort(finalizers)
		updated.SetFinalizers(finalizers)
		expectMetadata(t, updated,
			map[string]string{claimLabel: "stored", "app": "mine"},
			map[string]string{clusterAnnotation: "one", v1alpha1.AnnotationDesiredHash: "stored", "note": "mine"},
			[]string{"example.com/mine", v1alpha1.Finalizer})
	}
}

func TestWritingBackWhatWasReadWarnsOfNothing(t *testing.T) {
	store, s, _ := served(t)
	ctx := in(t.Context(), one, namespace)
	create(t, WithInternal(ctx), store, decoded(store.Kind, "a", func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{claimLabel: "stored"})
		o.SetFinalizers([]string{v1alpha1.Finalizer})
	}))
	seen := &warnings{}
	client := s.client(t, one, seen).Namespace(namespace)
	object, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	updated, err := client.Update(t.Context(), object, metav1.UpdateOptions{})
	if err != nil || len(seen.texts) > 0 || updated.GetResourceVersion() != object.GetResourceVersion() {
		t.Errorf("warnings %q, error %v, resourceVersion %s to %s", seen.texts, err, object.GetResourceVersion(), updated.GetResourceVersion())
	}
}

func TestKropWritesReservedMetadataButNotTheCluster(t *testing.T) {
	store := newStore(t, newKind(t, definition(t, newGroup())))
	ctx := WithInternal(in(t.Context(), one, namespace))
	created := create(t, ctx, store, decoded(store.Kind, "a", forged))
	if created.GetLabels()[kropLabel] != "forged" || !slices.Contains(created.GetFinalizers(), v1alpha1.Finalizer) {
		t.Errorf("metadata %v", created.Object["metadata"])
	}
	if got := created.GetAnnotations()[clusterAnnotation]; got != "one" {
		t.Errorf("cluster %q", got)
	}
	created.SetFinalizers(nil)
	updated := update(t, ctx, store, created)
	if len(updated.GetFinalizers()) != 0 {
		t.Errorf("finalizers %v", updated.GetFinalizers())
	}
}

func TestAllowedReservedMetadataIsTheUsers(t *testing.T) {
	store := newStore(t, newKind(t, definition(t, newGroup())), v1alpha1.AnnotationForceDelete)
	ctx := in(t.Context(), one, namespace)
	created := create(t, ctx, store, decoded(store.Kind, "a", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationForceDelete: "true", v1alpha1.AnnotationDesiredHash: "x"})
	}))
	expectMetadata(t, created, nil, map[string]string{clusterAnnotation: "one", v1alpha1.AnnotationForceDelete: "true"}, nil)
	created.SetAnnotations(nil)
	expectMetadata(t, update(t, ctx, store, created), nil, map[string]string{clusterAnnotation: "one"}, nil)
}

func TestApplyOwnsNothingThatIsStamped(t *testing.T) {
	store, _, client := served(t)
	applied, err := client.Apply(t.Context(), "a", widget(store.Kind, "a", forged), metav1.ApplyOptions{FieldManager: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range applied.GetManagedFields() {
		for _, stamped := range []string{"f:" + clusterAnnotation, v1alpha1.Finalizer} {
			if strings.Contains(entry.FieldsV1.GetRawString(), stamped) {
				t.Errorf("%s owns %s: %s", entry.Manager, stamped, entry.FieldsV1.GetRawString())
			}
		}
		if !strings.Contains(entry.FieldsV1.GetRawString(), "f:note") {
			t.Errorf("%s doesn't own its own annotation: %s", entry.Manager, entry.FieldsV1.GetRawString())
		}
	}
}

func update(t *testing.T, ctx context.Context, store *Store, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	updated, _, err := store.Main.Update(ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(object), nil, nil, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return updated.(*unstructured.Unstructured)
}

func expectMetadata(t *testing.T, object *unstructured.Unstructured, labels, annotations map[string]string, finalizers []string) {
	t.Helper()
	if got := object.GetLabels(); !sameMap(got, labels) {
		t.Errorf("labels %v, not %v", got, labels)
	}
	if got := object.GetAnnotations(); !sameMap(got, annotations) {
		t.Errorf("annotations %v, not %v", got, annotations)
	}
	if got := object.GetFinalizers(); !slices.Equal(got, finalizers) {
		t.Errorf("finalizers %v, not %v", got, finalizers)
	}
}

func sameMap(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return len(a) == len(b)
}
