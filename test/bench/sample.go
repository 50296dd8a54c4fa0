package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"go.opendefense.cloud/krop/test/testbed"
	"go.opendefense.cloud/krop/test/testbed/process"
)

// sample is one thing that was measured.
type sample struct {
	what      string
	durations []time.Duration
	elapsed   time.Duration // of the whole
	krop, kcp time.Duration // processor time of the whole
}

func (s *sample) percentile(p int) time.Duration {
	sorted := slices.Sorted(slices.Values(s.durations))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func (s *sample) each(total time.Duration) time.Duration {
	return total / time.Duration(len(s.durations))
}

// usage is what krop and kcp have used of the processor until now.
type usage struct{ krop, kcp process.Usage }

func (b *bench) usage() (u usage, err error) {
	for _, each := range []struct {
		server *testbed.Server
		to     *process.Usage
	}{{b.bed.Krop, &u.krop}, {b.bed.KCP, &u.kcp}} {
		if *each.to, err = each.server.Usage(); err != nil {
			return u, err
		}
	}
	return u, nil
}

// measure runs what fills the sample, and adds what that took as a whole.
func (b *bench) measure(what string, run func(*sample) error) (*sample, error) {
	s := &sample{what: what}
	before, err := b.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := run(s); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	s.elapsed = time.Since(began)
	after, err := b.usage()
	s.krop, s.kcp = after.krop.CPU-before.krop.CPU, after.kcp.CPU-before.kcp.CPU
	return s, err
}

// repeat measures one operation many times, one after another, after a few that don't count.
func (b *bench) repeat(what string, times int, operation func(i int) error) (*sample, error) {
	for i := range warmUps {
		if err := operation(-1 - i); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return b.measure(what, func(s *sample) error {
		for i := range times {
			began := time.Now()
			if err := operation(i); err != nil {
				return err
			}
			s.durations = append(s.durations, time.Since(began))
		}
		return nil
	})
}

// warmUps open connections and fill caches.
const warmUps = 5

// report prints samples side by side, and how the first compares to the second.
func report(title string, aim float64, samples ...*sample) {
	fmt.Printf("\n%s\n", title)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tp50\tp99\tper second\tCPU krop\tCPU kcp\t")
	for _, s := range samples {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1f\t%s\t%s\t\n", s.what, round(s.percentile(50)), round(s.percentile(99)),
			float64(len(s.durations))/s.elapsed.Seconds(), round(s.each(s.krop)), round(s.each(s.kcp)))
	}
	table.Flush()
	if len(samples) == 2 && aim > 0 {
		fmt.Printf("ratio of p50: %.2f (aim: at most %.1f)\n", float64(samples[0].percentile(50))/float64(samples[1].percentile(50)), aim)
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// hostOf cuts the path off an address.
func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String()
}
