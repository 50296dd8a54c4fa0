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
	what            string
	durations       []time.Duration
	elapsed         time.Duration // of the whole
	krop, kcp, host time.Duration // processor time of the whole
}

func (s *sample) percentile(p int) time.Duration {
	sorted := slices.Sorted(slices.Values(s.durations))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func (s *sample) each(total time.Duration) time.Duration {
	return total / time.Duration(len(s.durations))
}

// usage is what the servers have used of the processor until now, and have in memory.
type usage struct{ krop, kcp, host process.Usage }

func (b *bench) usage() (u usage, err error) {
	for _, each := range []struct {
		server *testbed.Server
		to     *process.Usage
	}{{b.bed.Krop, &u.krop}, {b.bed.KCP, &u.kcp}, {b.bed.Host, &u.host}} {
		if *each.to, err = each.server.Usage(); err != nil {
			return u, err
		}
	}
	return u, nil
}

// measure runs what fills the sample, and adds what that took as a whole. It can be called again to go on.
func (b *bench) measure(s *sample, run func() error) error {
	before, err := b.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := run(); err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	s.elapsed += time.Since(began)
	after, err := b.usage()
	s.krop += after.krop.CPU - before.krop.CPU
	s.kcp += after.kcp.CPU - before.kcp.CPU
	s.host += after.host.CPU - before.host.CPU
	return err
}

// report prints samples side by side, and how the first compares to each of the others if there is an aim for that.
func report(title string, aim float64, samples ...*sample) {
	fmt.Printf("\n%s\n", title)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tp50\tp99\tper second\tCPU krop\tCPU kcp\tCPU host\t")
	for _, s := range samples {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t\n", s.what, round(s.percentile(50)), round(s.percentile(99)),
			float64(len(s.durations))/s.elapsed.Seconds(), round(s.each(s.krop)), round(s.each(s.kcp)), round(s.each(s.host)))
	}
	table.Flush()
	if aim == 0 {
		return
	}
	for _, beside := range samples[1:] {
		fmt.Printf("ratio of p50 to %s: %s\n", beside.what, judged(ratio(samples[0].percentile(50), beside.percentile(50)), aim))
	}
}

func ratio(ours, beside time.Duration) float64 { return float64(ours) / float64(beside) }

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// hostOf cuts the path off an address.
func hostOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String()
}
