package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.opendefense.cloud/krop/test/testbed"
)

// size is how much is measured.
type size struct {
	operations int // of each kind that is measured one after another
	burst      int // instances that are created at once
	clients    int // that create them
	idle       int // instances that only exist
	only       string
}

// measures are what is measured, in this order.
var measures = []struct {
	name    string
	measure func(*bench, context.Context, size) error
}{
	{"plans", (*bench).plans},
	{"bare", (*bench).bareCreates},
	{"composed", (*bench).composedCreates},
	{"events", (*bench).statusEvents},
	{"bursts", (*bench).bursts},
	{"neighbours", (*bench).neighbours},
	{"memory", (*bench).memory},
}

func names() []string {
	all := make([]string, 0, len(measures))
	for _, m := range measures {
		all = append(all, m.name)
	}
	return all
}

func main() {
	var much size
	flag.IntVar(&much.operations, "operations", 200, "operations of each kind that is measured one by one")
	flag.IntVar(&much.burst, "burst", 200, "instances in the burst")
	flag.IntVar(&much.clients, "clients", 16, "clients in the burst")
	flag.IntVar(&much.idle, "instances", 1000, "idle instances at which memory is measured last")
	flag.StringVar(&much.only, "only", "", "measure one thing: "+strings.Join(names(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, much); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, much size) (err error) {
	fmt.Println("Starting kcp and krop, in a temporary folder.")
	// A folder of our own, so that kcp's storage is flushed to disk as krop's is.
	dir, err := os.MkdirTemp("", "krop-bench-")
	if err != nil {
		return fmt.Errorf("a folder for the test bed: %w", err)
	}
	defer os.RemoveAll(dir)
	bed, err := testbed.Start(ctx, testbed.Options{Dir: dir, WithoutHost: true, KropFlags: []string{"--resync=1h"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	b, err := prepare(ctx, bed)
	if err != nil {
		return err
	}
	for _, m := range measures {
		if much.only != "" && much.only != m.name {
			continue
		}
		if err := m.measure(b, ctx, much); err != nil {
			return err
		}
	}
	return nil
}
