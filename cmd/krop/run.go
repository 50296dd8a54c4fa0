package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"go.opendefense.cloud/krop/pkg/apiserver"
)

// serve runs krop until ctx ends: storage first, then what is stored, then the server, and all of
// it down again in reverse.
func serve(ctx context.Context, options *apiserver.Options) error {
	config, err := options.Config(ctx)
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
	running.Go(func() error {
		select {
		case err := <-k.storage.failed():
			return fmt.Errorf("embedded etcd: %w", err)
		case <-ctx.Done():
			return nil
		}
	})
	return running.Wait()
}

// ignoreEnd drops the error of something that ended because it was told to.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
