package main

import (
	"context"
	"errors"

	"go.opendefense.cloud/krop/pkg/apiserver"
)

// serve puts the parts together and runs them until ctx ends.
func serve(ctx context.Context, options *apiserver.Options) error {
	if _, err := options.Config(ctx); err != nil {
		return err
	}
	return errors.New("the server's parts are not put together yet")
}
