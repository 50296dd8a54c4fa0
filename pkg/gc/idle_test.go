package gc_test

import (
	"context"
	"strconv"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

var oneNode = &engine.Program{Blueprint: "databases", Export: export, SpecHash: "1", Nodes: []engine.Node{
	{ID: "server", Target: v1alpha1.TargetProvider, GVR: servers},
}}

// many is instances that are made when they are asked for, so that only the loop keeps anything of them.
type many struct {
	count  int
	passed chan struct{}
}

func (m *many) make(i int) *unstructured.Unstructured {
	name := strconv.Itoa(i)
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "default", "uid": "00000000-0000-0000-0000-" + name, "resourceVersion": strconv.Itoa(i + 1),
			"annotations": map[string]any{v1alpha1.AnnotationCluster: "consumer" + strconv.Itoa(i%100)},
		},
		"status": map[string]any{"composition": map[string]any{"resources": []any{
			map[string]any{"id": "server", "target": "provider", "apiVersion": "infra.example.org/v1", "resource": "servers", "name": name},
		}}},
	}}
}

func (m *many) Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error {
	for i := range m.count {
		handle(watch.Added, m.make(i))
	}
	handle(watch.Bookmark, nil)
	<-ctx.Done()
	return nil
}

func (m *many) Get(_ context.Context, key v1alpha1.InstanceKey) (*unstructured.Unstructured, error) {
	i, err := strconv.Atoi(key.Name)
	if err != nil {
		return nil, err
	}
	return m.make(i), nil
}

func (m *many) Labelled(context.Context, v1alpha1.InstanceKey) (bool, error) { return true, nil }

func (m *many) Relabel(context.Context, v1alpha1.InstanceKey) (before, after *unstructured.Unstructured, err error) {
	return nil, nil, nil
}

func (m *many) Lock(context.Context, v1alpha1.InstanceKey) (func(), error) {
	return func() { m.passed <- struct{}{} }, nil
}

func (m *many) Record(_ context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return instance, nil
}

func (m *many) UIDs(context.Context, logicalcluster.Name) (sets.Set[types.UID], error) {
	return nil, nil
}
func (m *many) Delete(context.Context, v1alpha1.InstanceKey) error                   { return nil }
func (m *many) DeleteExactly(context.Context, v1alpha1.InstanceKey, types.UID) error { return nil }
func (m *many) Finalize(context.Context, *unstructured.Unstructured) error           { return nil }

// nothing composes nothing.
type nothing struct{}

func (nothing) Apply(_ context.Context, request compose.Request, _ compose.Intent) (*compose.Result, error) {
	return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
}

func (nothing) Prune(_ context.Context, request compose.Request, plan *engine.Plan, _ compose.Intent) (*compose.Result, error) {
	return &compose.Result{Instance: request.Instance, Plan: plan}, nil
}

func (nothing) Teardown(_ context.Context, request compose.Request, _ compose.Intent) (bool, *compose.Result, error) {
	return true, &compose.Result{Instance: request.Instance}, nil
}

// silence tells of no children.
type silence struct{}

func (silence) Watch(ctx context.Context, _ v1alpha1.Target, _ v1alpha1.ExportKey, _ string, _ schema.GroupVersionResource, _ func(watch.EventType, *unstructured.Unstructured)) error {
	<-ctx.Done()
	return nil
}

func (silence) WatchAll(ctx context.Context, _ v1alpha1.Target, _ v1alpha1.ExportKey, _ schema.GroupVersionResource, _ func(watch.EventType, *unstructured.Unstructured)) error {
	<-ctx.Done()
	return nil
}
