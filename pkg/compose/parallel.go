package compose

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// each calls do for all items, at most fanOut at once, and returns what it returned in their order. A
// panic of one is the caller's: in a goroutine of its own it would end the process, for all tenants.
func each[T, R any](ctx context.Context, items []T, do func(context.Context, T) R) []R {
	results := make([]R, len(items))
	if len(items) == 1 {
		results[0] = do(ctx, items[0])
		return results
	}
	var caught firstPanic
	var group errgroup.Group
	group.SetLimit(fanOut)
	for i, item := range items {
		group.Go(func() error {
			defer caught.catch()
			results[i] = do(ctx, item)
			return nil
		})
	}
	_ = group.Wait() // failures are part of the results
	if caught.value != nil {
		panic(&caught)
	}
	return results
}

// firstPanic is the first panic of several goroutines, and where it happened. They all end before it is read.
type firstPanic struct {
	once  sync.Once
	value any
	stack []byte
}

// catch is to be deferred.
func (p *firstPanic) catch() {
	if value := recover(); value != nil {
		p.once.Do(func() { p.value, p.stack = value, debug.Stack() })
	}
}

// Error is for whoever recovers from it: the caller's own stack would not say where it happened.
func (p *firstPanic) Error() string { return fmt.Sprintf("%v\n%s", p.value, p.stack) }
