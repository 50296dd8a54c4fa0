package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"go.opendefense.cloud/krop/test/testbed"
)

// size is how much is measured.
type size struct {
	operations int    // of each kind that is measured one after another
	burst      int    // instances that are created at once
	clients    int    // that create them
	idle       int    // instances that only exist
	published  int    // blueprints that nobody has bound
	only       string // the one measure to take; all if empty
}

func main() {
	var much size
	flag.IntVar(&much.operations, "operations", 200, "operations of each kind that is measured one by one")
	flag.IntVar(&much.burst, "burst", 200, "instances in the burst")
	flag.IntVar(&much.clients, "clients", 16, "clients in the burst")
	flag.IntVar(&much.idle, "instances", 1000, "idle instances at which memory is measured last")
	flag.IntVar(&much.published, "blueprints", 500, "blueprints at which memory is measured last")
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

func run(ctx context.Context, much size) error {
	chosen, err := choose(much.only)
	if err != nil {
		return err
	}
	for _, m := range chosen {
		if m.engine == nil {
			continue
		}
		if err := m.engine(ctx, much); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if !slices.ContainsFunc(chosen, func(m measure) bool { return m.servers != nil }) {
		return nil
	}
	return withServers(ctx, func(b *bench) error {
		for _, m := range chosen {
			if m.servers == nil {
				continue
			}
			if err := m.servers(b, ctx, much); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		return nil
	})
}

// withServers does something on a test bed with everything published and bound.
func withServers(ctx context.Context, do func(*bench) error) (err error) {
	fmt.Println("\nStarting kcp, krop and the host, in a temporary folder.")
	// A folder of our own, so that kcp's and the host's storage is flushed to disk as krop's is.
	dir, err := os.MkdirTemp("", "krop-bench-")
	if err != nil {
		return fmt.Errorf("a folder for the test bed: %w", err)
	}
	defer os.RemoveAll(dir)
	// More blueprints than one workspace may have, since one has all that are measured.
	bed, err := testbed.Start(ctx, testbed.Options{Dir: dir, KropFlags: []string{"--resync=1h", "--max-blueprints=1000"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	b, err := prepare(ctx, bed)
	if err != nil {
		return err
	}
	return do(b)
}
