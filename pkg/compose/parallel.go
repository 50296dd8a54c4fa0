package compose

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// each calls do for all items, at most fanOut at once, and returns what it returned in their order.
func each[T, R any](ctx context.Context, items []T, do func(context.Context, T) R) []R {
	results := make([]R, len(items))
	if len(items) == 1 {
		results[0] = do(ctx, items[0])
		return results
	}
	var group errgroup.Group
	group.SetLimit(fanOut)
	for i, item := range items {
		group.Go(func() error {
			results[i] = do(ctx, item)
			return nil
		})
	}
	_ = group.Wait() // failures are part of the results
	return results
}
