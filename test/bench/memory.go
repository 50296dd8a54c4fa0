package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// memory measures what krop has resident with more and more idle instances. Those that were measured
// before are there too, so it starts with them.
func (b *bench) memory(ctx context.Context, much size) error {
	fmt.Println("\nMemory of krop (resident, after what was measured above)")
	made := 0
	for _, step := range []int{0, 1000, 5000} {
		if step > much.idle {
			break
		}
		if err := b.fill(ctx, made, step, much.clients); err != nil {
			return err
		}
		made = step
		used, err := b.usage()
		if err != nil {
			return err
		}
		fmt.Printf("  %5d more instances: %4d MiB\n", step, used.krop.Memory>>20)
	}
	return nil
}

func (b *bench) fill(ctx context.Context, from, to, clients int) error {
	creates := errgroup.Group{}
	creates.SetLimit(clients)
	for i := from; i < to; i++ {
		creates.Go(func() error {
			return create(ctx, b.consumer, bares, instance("Bare", fmt.Sprintf("idle-%d", i)))
		})
	}
	return creates.Wait()
}
