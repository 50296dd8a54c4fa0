package main

import (
	"fmt"
	"time"
)

// operation is one that is measured many times, one after another. It gets a number that it has never got.
type operation struct {
	what string
	do   func(i int) error
}

const (
	// warmUps open connections and fill caches.
	warmUps = 5
	// rounds of operations by turns: what else the machine is busy with, now and not a minute later, is shared by all.
	rounds = 5
)

// compare measures operations beside each other and prints how the first compares to the others.
func (b *bench) compare(title string, aim float64, times int, operations ...operation) error {
	samples, err := b.repeat(times, operations...)
	if err != nil {
		return err
	}
	report(title, aim, samples...)
	return nil
}

// repeat measures operations many times each, by turns, after a few that don't count.
func (b *bench) repeat(times int, operations ...operation) ([]*sample, error) {
	samples := make([]*sample, len(operations))
	for at, o := range operations {
		samples[at] = &sample{what: o.what}
		for i := range warmUps {
			if err := o.do(i); err != nil {
				return nil, fmt.Errorf("%s: %w", o.what, err)
			}
		}
	}
	for round := range rounds {
		for at, o := range operations {
			err := b.measure(samples[at], func() error {
				return samples[at].fill(warmUps+times*round/rounds, warmUps+times*(round+1)/rounds, o.do)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return samples, nil
}

func (s *sample) fill(from, to int, do func(i int) error) error {
	for i := from; i < to; i++ {
		began := time.Now()
		if err := do(i); err != nil {
			return err
		}
		s.durations = append(s.durations, time.Since(began))
	}
	return nil
}
