package main

import (
	"context"
	"path/filepath"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// storage is etcd: krop's own, or a cluster.
type storage struct {
	*etcd.Backend
	embedded *etcd.Embedded // nil with a cluster
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
	return opened, nil
}

// failed gives the error that an embedded server dies of; it never does for a cluster.
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
