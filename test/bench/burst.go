package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// bursts compares many clients at once.
func (b *bench) bursts(ctx context.Context, much size) error {
	instances, err := b.burst(much, "instances with five children", func(i int) error {
		return create(ctx, b.consumer, fives, instance("Five", fmt.Sprintf("burst-%d", i)))
	})
	if err != nil {
		return err
	}
	byHand, err := b.burst(much, "hand-written client", func(i int) error {
		return byHand(ctx, b.virtual, fmt.Sprintf("burst-hand-%d", i))
	})
	if err != nil {
		return err
	}
	report(fmt.Sprintf("A burst of %d from %d clients", much.burst, much.clients), 0, instances, byHand)
	fmt.Printf("ratio of throughput: %s\n", judged(ratio(instances.elapsed, byHand.elapsed), 2))
	return nil
}

func (b *bench) burst(much size, what string, operation func(i int) error) (*sample, error) {
	s := &sample{what: what}
	return s, b.measure(s, func() error {
		var mutex sync.Mutex
		clients := errgroup.Group{}
		clients.SetLimit(much.clients)
		for i := range much.burst {
			clients.Go(func() error {
				began := time.Now()
				if err := operation(i); err != nil {
					return err
				}
				mutex.Lock()
				defer mutex.Unlock()
				s.durations = append(s.durations, time.Since(began))
				return nil
			})
		}
		return clients.Wait()
	})
}
