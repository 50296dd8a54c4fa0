package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/test/testbed"
)

//go:embed offer.yaml
var offering string

//go:embed hostrights.yaml
var hostRights string

// publishers is how many blueprints are applied at one time: enough to keep krop busy, and fewer than may wait for
// being compiled.
const publishers = 8

// blueprintMemory measures what krop has resident with more and more blueprints that are published and bound by nobody.
func (b *bench) blueprintMemory(ctx context.Context, much size) error {
	if _, err := b.bed.Kubectl(testbed.Host).Apply(ctx, hostRights); err != nil {
		return err
	}
	fmt.Println("\nMemory of krop (resident) with blueprints of five resources, published and not bound")
	before, err := b.usage()
	if err != nil {
		return err
	}
	fmt.Printf("  %4d more blueprints: %4d MiB\n", 0, before.krop.Memory>>20)
	made := 0
	for _, step := range []int{10, 100, 500} {
		if step > much.published {
			break
		}
		began := time.Now()
		if err := b.publish(ctx, made, step); err != nil {
			return err
		}
		took := time.Since(began)
		after, err := b.usage()
		if err != nil {
			return err
		}
		fmt.Printf("  %4d more blueprints: %4d MiB, %.2f MiB each; the last %d took %s\n", step, after.krop.Memory>>20,
			float64(after.krop.Memory-before.krop.Memory)/float64(step<<20), step-made, took.Round(time.Second/10))
		made = step
	}
	return nil
}

// publish applies blueprints and waits until all are published.
func (b *bench) publish(ctx context.Context, from, to int) error {
	creates, creating := errgroup.WithContext(ctx)
	creates.SetLimit(publishers)
	for i := from; i < to; i++ {
		creates.Go(func() error {
			offer, err := offer(i)
			if err != nil {
				return err
			}
			_, err = b.provider.Resource(blueprint).Create(creating, offer, metav1.CreateOptions{})
			return err
		})
	}
	if err := creates.Wait(); err != nil {
		return err
	}
	_, err := b.bed.Kubectl(testbed.Provider).Run(ctx, "wait", "--for=condition=Ready", "rgd", "--all", "--timeout=10m")
	return err
}

// offer is a blueprint with a kind of its own.
func offer(i int) (*unstructured.Unstructured, error) {
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(offering), &object); err != nil {
		return nil, fmt.Errorf("an offering: %w", err)
	}
	made := &unstructured.Unstructured{Object: object}
	made.SetName(fmt.Sprintf("offers-%d", i))
	return made, unstructured.SetNestedField(object, fmt.Sprintf("Offer%d", i), "spec", "schema", "kind")
}
