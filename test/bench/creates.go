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
	return b.compare("Create with no children", 1.5, much.operations,
		operation{"instance without children", func(i int) error {
			return create(ctx, b.consumer, bares, instance("Bare", fmt.Sprintf("bare-%d", i)))
		}},
		operation{"ConfigMap through the same kcp", func(i int) error {
			return create(ctx, b.consumer, configMaps, configMap(fmt.Sprintf("plain-%d", i)))
		}})
}

// composedCreates compares an instance with five children to a client that makes the same calls.
func (b *bench) composedCreates(ctx context.Context, much size) error {
	return b.compare("Create with five consumer children", 1.5, much.operations,
		operation{"instance with five children", func(i int) error {
			return create(ctx, b.consumer, fives, instance("Five", fmt.Sprintf("five-%d", i)))
		}},
		operation{"hand-written client", func(i int) error {
			return byHand(ctx, b.virtual, fmt.Sprintf("hand-%d", i))
		}})
}

// byHand dry-runs five ConfigMaps side by side, does what is to be done in between, and then creates them side by side.
func byHand(ctx context.Context, client dynamic.Interface, name string, between ...func() error) error {
	if err := createAll(ctx, client, name, dryRunning); err != nil {
		return err
	}
	for _, do := range between {
		if err := do(); err != nil {
			return err
		}
	}
	return createAll(ctx, client, name, metav1.CreateOptions{})
}

func createAll(ctx context.Context, client dynamic.Interface, name string, options metav1.CreateOptions) error {
	calls, ctx := errgroup.WithContext(ctx)
	for child := range children {
		calls.Go(func() error {
			_, err := client.Resource(configMaps).Namespace(namespace).Create(ctx, configMap(fmt.Sprintf("%s-%d", name, child)), options)
			return err
		})
	}
	return calls.Wait()
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
