package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pace is how often the well-behaved consumer does something: far below what the server can do.
const pace = 100 * time.Millisecond

// neighbours compares what a well-behaved consumer sees alone, and while others try to take more than their share. The
// machine is the same for all of them, kcp and their own clients: what those take of it is part of the difference.
func (b *bench) neighbours(ctx context.Context, much size) error {
	others, err := b.prepareHostile(ctx)
	if err != nil {
		return err
	}
	aloneCreates, aloneGets, err := b.steady(ctx, "alone", much)
	if err != nil {
		return err
	}
	hostileCtx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); others.run(hostileCtx) }()
	creates, gets, err := b.steady(ctx, "beside", much)
	stop()
	<-ended
	if err != nil {
		return err
	}
	report("A neighbour's creates with five children, beside a greedy consumer and a hostile provider", 0, creates, aloneCreates)
	reportTail(creates, aloneCreates)
	report("A neighbour's gets, one after each create (processor time is counted with those)", 0, gets, aloneGets)
	reportTail(gets, aloneGets)
	fmt.Printf("meanwhile %d hostile requests were answered: %s\n", others.asked.Load(), others.answers())
	return nil
}

func reportTail(beside, alone *sample) {
	fmt.Printf("ratio of p99: %s\n", judged(ratio(beside.percentile(99), alone.percentile(99)), 2))
}

// steady creates and gets instances at an even pace.
func (b *bench) steady(ctx context.Context, what string, much size) (creates, gets *sample, err error) {
	creates, gets = &sample{what: "create, " + what}, &sample{what: "get, " + what}
	err = b.measure(creates, func() error {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for i := range much.operations {
			<-ticker.C
			name := fmt.Sprintf("%s-%d", what, i)
			began := time.Now()
			if err := create(ctx, b.consumer, fives, instance("Five", name)); err != nil {
				return err
			}
			created := time.Now()
			if _, err := b.consumer.Resource(fives).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err
			}
			creates.durations = append(creates.durations, created.Sub(began))
			gets.durations = append(gets.durations, time.Since(created))
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	gets.elapsed = creates.elapsed
	return creates, gets, nil
}

// answers is how often each code was the answer.
func (h *hostile) answers() string {
	var told []string
	for _, code := range slices.Sorted(maps.Keys(h.codes)) {
		told = append(told, fmt.Sprintf("%d with %d", h.codes[code], code))
	}
	return strings.Join(told, ", ")
}
