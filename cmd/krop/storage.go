package main

import (
	"context"
	"path/filepath"
	"time"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/gc"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// storage is etcd: krop's own, or a cluster.
type storage struct {
	*etcd.Backend
	embedded *etcd.Embedded // nil with a cluster
	// since is when it was used for the first time. Orphans older than that may be the children of
	// instances that were lost with another storage: nothing is proven about them.
	since time.Time
	// installation identifies it among those of other krops.
	installation string
}

func openStorage(ctx context.Context, options apiserver.Etcd) (*storage, error) {
	opened := &storage{}
	client := etcd.ClientConfig{
		Endpoints: options.Servers, TrustedCAFile: options.CAFile, CertFile: options.CertFile, KeyFile: options.KeyFile,
	}
	if len(options.Servers) == 0 {
		embedded, err := etcd.Start(ctx, etcd.EmbeddedConfig{DataDir: filepath.Join(options.DataDir, "etcd")})
		if err != nil {
			return nil, err
		}
		opened.embedded = embedded
		client = embedded.Client()
	}
	backend, err := etcd.Connect(ctx, etcd.BackendConfig{Client: client})
	if err != nil {
		opened.close()
		return nil, err
	}
	opened.Backend = backend
	if opened.since, err = gc.StorageSince(ctx, backend.Client().Client, backend.Prefix()+"/since"); err != nil {
		opened.close()
		return nil, err
	}
	if opened.installation, err = gc.Installation(ctx, backend.Client().Client, backend.Prefix()+"/installation"); err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

// failed gives the error that an embedded server dies of, and is closed when it stops; a cluster's never ends.
func (s *storage) failed() <-chan error {
	if s.embedded == nil {
		return nil
	}
	return s.embedded.Err()
}

func (s *storage) close() {
	if s.Backend != nil {
		s.Backend.Close()
	}
	if s.embedded != nil {
		s.embedded.Stop()
	}
}
