// Command demo starts a real kcp and krop, plays the story of package story as provider and as consumers, shows
// every command with its output, and stops everything. It ends with 0 only if every step did what it should.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opendefense.cloud/krop/test/demo/story"
	"go.opendefense.cloud/krop/test/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\nthe demo failed: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	began := time.Now()
	checkout, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	fmt.Println("Starting kcp, a host cluster and krop on this machine, in a temporary folder.")
	bed, err := testbed.Start(ctx, testbed.Options{Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	scene, err := story.NewScene(bed, checkout)
	if err != nil {
		return err
	}
	if err := story.Play(ctx, scene, stage{os.Stdout}, story.Chapters()...); err != nil {
		return err
	}
	fmt.Printf("\nEvery step did what it should (%s). Stopping.\n", time.Since(began).Round(time.Second))
	return nil
}
