package etcd

import (
	"context"
	"fmt"
	"path"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"
)

const (
	// DefaultPrefix is where all of krop's keys are.
	DefaultPrefix = "/krop"
	// DefaultCompactionInterval is how long history is kept, at least: kube-apiserver's default, which
	// clients' expectations of resourceVersions that still work are made for.
	DefaultCompactionInterval = storagebackend.DefaultCompactInterval
	// healthKey, below the prefix, is read, and never written, to see whether etcd answers.
	healthKey = "/health"
)

// BackendConfig configures what all kinds share.
type BackendConfig struct {
	Client ClientConfig
	// Prefix of all keys; empty for DefaultPrefix.
	Prefix string
	// CompactionInterval is how long history is kept at least; zero for DefaultCompactionInterval.
	CompactionInterval time.Duration
}

// Backend is the one client and the one compactor that all kinds share: a client per kind would
// cost 29 goroutines and its own connections. Safe for concurrent use.
type Backend struct {
	client    *kubernetes.Client
	compactor compactor
	prefix    string
}

type compactor interface {
	etcd3.Compactor
	Stop()
}

// Connect connects to etcd and starts compacting. It fails if etcd can't be read.
func Connect(ctx context.Context, config BackendConfig) (*Backend, error) {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	config.Prefix = path.Join("/", config.Prefix)
	client, err := config.Client.dial(ctx, config.Prefix+healthKey)
	if err != nil {
		return nil, err
	}
	return newBackend(client, config), nil
}

func newBackend(client *kubernetes.Client, config BackendConfig) *Backend {
	if config.CompactionInterval == 0 {
		config.CompactionInterval = DefaultCompactionInterval
	}
	return &Backend{
		client:    client,
		compactor: etcd3.NewCompactor(client.Client, config.CompactionInterval, clock.RealClock{}, nil),
		prefix:    config.Prefix,
	}
}

// Client is the shared client, for what isn't an API object: the leases that divide the loop.
func (b *Backend) Client() *kubernetes.Client { return b.client }

// Prefix is where all of krop's keys are.
func (b *Backend) Prefix() string { return b.prefix }

// Check reads from etcd, consistently: it fails while there is no quorum.
func (b *Backend) Check(ctx context.Context) error {
	if _, err := b.client.KV.Get(ctx, b.prefix+healthKey); err != nil {
		return fmt.Errorf("reading from etcd: %w", err)
	}
	return nil
}

// Close stops compacting and closes the client. Destroy the stores first.
func (b *Backend) Close() {
	b.compactor.Stop()
	_ = b.client.Close()
}
