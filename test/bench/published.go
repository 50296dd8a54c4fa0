package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
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

// publishPatience is when blueprints that have been stored are taken for never being published.
const publishPatience = 10 * time.Minute

// blueprintMemory measures what krop has resident with more and more blueprints that are published and bound by nobody.
func (b *bench) blueprintMemory(ctx context.Context, much size) error {
	if _, err := b.bed.Kubectl(testbed.Host).Apply(ctx, hostRights); err != nil {
		return err
	}
	fmt.Println("\nMemory of krop (resident) with blueprints of five resources, published and not bound")
	first, err := b.usage()
	if err != nil {
		return err
	}
	fmt.Printf("  %4d more blueprints: %4d MiB\n", 0, first.krop.Memory>>20)
	made := 0
	for _, step := range []int{10, 100, 500} {
		if step > much.published {
			break
		}
		s := &sample{what: "publishing"}
		if err := b.measure(s, func() error { return b.publish(ctx, made, step) }); err != nil {
			return err
		}
		now, err := b.usage()
		if err != nil {
			return err
		}
		count := time.Duration(step - made)
		fmt.Printf("  %4d more blueprints: %4d MiB, %.2f MiB each; publishing one took %s, CPU krop %s, CPU kcp %s\n", step, now.krop.Memory>>20,
			float64(now.krop.Memory-first.krop.Memory)/float64(step<<20), round(s.elapsed/count), round(s.krop/count), round(s.kcp/count))
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
	// kubectl wait would ask for one after the other.
	return wait.PollUntilContextTimeout(ctx, time.Second, publishPatience, true, func(ctx context.Context) (bool, error) {
		all, err := b.provider.Resource(blueprint).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(all.Items, unpublished), nil
	})
}

func unpublished(blueprint unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(blueprint.Object, "status", "conditions")
	return !slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "Ready" && fields["status"] == "True"
	})
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
