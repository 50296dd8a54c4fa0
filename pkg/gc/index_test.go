package gc

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func stored(cluster, name, uid string, resources ...string) *unstructured.Unstructured {
	rows := make([]any, 0, len(resources))
	for _, resource := range resources {
		rows = append(rows, map[string]any{"id": resource, "target": "provider", "apiVersion": "v1", "kind": "K", "resource": resource, "state": "Ready"})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "default", "uid": uid,
			"annotations": map[string]any{v1alpha1.AnnotationCluster: cluster},
		},
		"status": map[string]any{"composition": map[string]any{"resources": rows}},
	}}
}

func sourceOf(resource string) source {
	return source{target: v1alpha1.TargetProvider, gvr: schema.GroupVersionResource{Version: "v1", Resource: resource}}
}

func TestIndexKnowsWhatAllInventoriesNeedWatched(t *testing.T) {
	x := newIndex(v1alpha1.ExportKey{Cluster: "p", Name: "e"})
	steps := []struct {
		name    string
		do      func() bool
		changed bool
		want    []string
	}{
		{"first of its kind", func() bool { _, c := x.put(stored("c", "a", "1", "secrets")); return c }, true, []string{"secrets"}},
		{"another like it", func() bool { _, c := x.put(stored("c", "b", "2", "secrets")); return c }, false, []string{"secrets"}},
		{"the same again", func() bool { _, c := x.put(stored("c", "b", "2", "secrets")); return c }, false, []string{"secrets"}},
		{"one more resource", func() bool { _, c := x.put(stored("c", "b", "2", "secrets", "pods")); return c }, true, []string{"secrets", "pods"}},
		{"back again", func() bool { _, c := x.put(stored("c", "b", "2", "secrets")); return c }, true, []string{"secrets"}},
		{"one goes", func() bool { return x.remove("1") }, false, []string{"secrets"}},
		{"it is gone already", func() bool { return x.remove("1") }, false, []string{"secrets"}},
		{"the last goes", func() bool { return x.remove("2") }, true, nil},
	}
	for _, step := range steps {
		if got := step.do(); got != step.changed {
			t.Errorf("%s: changed is %t, want %t", step.name, got, step.changed)
		}
		sources := x.sources()
		if len(sources) != len(step.want) {
			t.Errorf("%s: sources are %v, want %v", step.name, sources, step.want)
		}
		for _, resource := range step.want {
			if _, ok := sources[sourceOf(resource)]; !ok {
				t.Errorf("%s: %s is not watched", step.name, resource)
			}
		}
	}
}

func TestIndexTellsARecreatedInstanceFromItsPredecessor(t *testing.T) {
	x := newIndex(v1alpha1.ExportKey{Cluster: "p", Name: "e"})
	x.put(stored("c", "a", "old"))
	x.put(stored("c", "a", "new"))
	x.remove("old")
	if _, ok := x.find("old"); ok {
		t.Error("the predecessor is still there")
	}
	key, ok := x.find("new")
	if !ok || key.Name != "a" || key.Cluster != "c" || key.Namespace != "default" {
		t.Errorf("the successor is %v, %t", key, ok)
	}
	if gone := x.removeKey(key); len(gone) != 1 || gone[0] != "new" {
		t.Errorf("gone are %v", gone)
	}
	if _, ok := x.find(types.UID("new")); ok {
		t.Error("an instance is known that storage doesn't have")
	}
}
