package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/registry"
)

// serve runs krop until ctx ends: storage first, then what is stored, then the server, and all of
// it down again in reverse.
func serve(ctx context.Context, options *apiserver.Options) error {
	config, err := options.Config()
	if err != nil {
		return err
	}
	storage, err := openStorage(ctx, options.Etcd)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	defer storage.close()
	kcp, err := connect(config)
	if err != nil {
		return fmt.Errorf("kcp: %w", err)
	}
	defer kcp.bindings.Close()
	krop := assemble(config, storage, kcp)
	server, err := config.Complete(krop.dependencies()).New()
	if err != nil {
		return err
	}
	return krop.run(ctx, server)
}

// run runs the server beside the loops. The first that ends, ends the others.
func (k *krop) run(ctx context.Context, server *apiserver.Server) error {
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return server.Run(ctx) })
	running.Go(func() error { k.loop.Run(ctx); return nil })
	running.Go(func() error { k.leases.run(ctx); return nil })
	running.Go(func() error { return ignoreEnd(ctx, k.serveBlueprints(ctx)) })
	running.Go(func() error { return endOf(ctx, k.storage.failed()) })
	err := running.Wait()
	stopCaches(k.catalog)
	return err
}

// endOf waits for the end of an embedded etcd. Its channel yields what it dies of, and is closed if it
// stops without a reason: nothing can be stored then either.
func endOf(ctx context.Context, failed <-chan error) error {
	select {
	case err := <-failed:
		if err == nil {
			err = errors.New("it has stopped")
		}
		return fmt.Errorf("embedded etcd: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// stopCaches ends the watches of etcd that the watch caches hold. Left open until the client closes,
// each would be reported as an error, and would keep an embedded etcd from stopping for seconds.
func stopCaches(catalog *registry.Catalog) {
	var stopping sync.WaitGroup
	catalog.Range(func(served *registry.Served) bool {
		stopping.Go(served.Records.Destroy)
		return true
	})
	stopping.Wait()
}

// ignoreEnd drops the error of something that ended because it was told to.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
