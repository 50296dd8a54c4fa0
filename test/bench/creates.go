package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// children of an instance of Five, and writes of the hand-written client.
const children = 5

// bareCreates compares an instance without children to a ConfigMap: what krop's own path costs.
func (b *bench) bareCreates(ctx context.Context, much size) error {
	instances, err := b.repeat("instance without children", much.operations, func(i int) error {
		return create(ctx, b.consumer, bares, instance("Bare", fmt.Sprintf("bare-%d", i+warmUps)))
	})
	if err != nil {
		return err
	}
	plain, err := b.repeat("ConfigMap through the same kcp", much.operations, func(i int) error {
		return create(ctx, b.consumer, configMaps, configMap(fmt.Sprintf("plain-%d", i+warmUps)))
	})
	if err != nil {
		return err
	}
	report("Create with no children", 1.5, instances, plain)
	return nil
}

// composedCreates compares an instance with five children to a client that makes the same calls.
func (b *bench) composedCreates(ctx context.Context, much size) error {
	instances, err := b.repeat("instance with five children", much.operations, func(i int) error {
		return create(ctx, b.consumer, fives, instance("Five", fmt.Sprintf("five-%d", i+warmUps)))
	})
	if err != nil {
		return err
	}
	byHand, err := b.repeat("hand-written client", much.operations, func(i int) error {
		return b.byHand(ctx, fmt.Sprintf("hand-%d", i+warmUps))
	})
	if err != nil {
		return err
	}
	report("Create with five consumer children", 1.5, instances, byHand)
	return nil
}

// byHand dry-runs five ConfigMaps side by side, then creates them side by side.
func (b *bench) byHand(ctx context.Context, name string) error {
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		calls, ctx := errgroup.WithContext(ctx)
		for child := range children {
			calls.Go(func() error {
				_, err := b.virtual.Resource(configMaps).Namespace(namespace).Create(ctx,
					configMap(fmt.Sprintf("%s-%d", name, child)), metav1.CreateOptions{DryRun: dryRun})
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	_, err := client.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

func instance(kind, name string) *unstructured.Unstructured {
	return object(bares.GroupVersion().String(), kind, name, "spec", map[string]any{"text": "some text"})
}

func configMap(name string) *unstructured.Unstructured {
	return object("v1", "ConfigMap", name, "data", map[string]any{"text": "some text"})
}

func object(apiVersion, kind, name, field string, value map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace},
		field:      value,
	}}
}
