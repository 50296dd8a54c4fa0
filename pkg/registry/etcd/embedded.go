package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

const (
	// quotaBytes is the largest database that etcd is tested with.
	quotaBytes = 8 << 30
	// defragmentAtStart is how many MiB must be reclaimable for a start to spend time on it.
	defragmentAtStart = 256
	// serverLogLevel: etcd's information and warnings (an apply that took 100 ms) would drown krop's log.
	serverLogLevel = "error"
	// longestSocketPath is what all platforms accept in a socket's address, with its closing zero.
	longestSocketPath = 103
	// privateDir keeps other users of the machine away from the data and the socket.
	privateDir = 0o700
)

// EmbeddedConfig configures an etcd server inside this process.
type EmbeddedConfig struct {
	// DataDir holds the database and nothing else. It is created if absent, and closed to other users.
	DataDir string
	// UnsafeNoFsync trades durability for speed. Only for tests.
	UnsafeNoFsync bool
}

// Embedded is a running etcd server. It listens on a unix socket that only this user can reach, and
// on no port: whoever could connect would read and write every tenant's objects.
type Embedded struct {
	server    *embed.Etcd
	lock      *fileutil.LockedFile
	log       zap.AtomicLevel
	socket    string
	socketDir string // to be removed, if it isn't part of the data directory
}

// Start starts a server and waits until it serves. History is compacted by the backend's compactor
// only, as with an external server. The context bounds the start, not the server's life.
func Start(ctx context.Context, config EmbeddedConfig) (*Embedded, error) {
	if config.DataDir == "" {
		return nil, errors.New("an embedded etcd needs a data directory")
	}
	if err := makePrivate(config.DataDir); err != nil {
		return nil, err
	}
	logger, level, err := quietLogger(serverLogLevel)
	if err != nil {
		return nil, err
	}
	embedded := &Embedded{log: level}
	if err := embedded.lockDir(config.DataDir); err != nil {
		return nil, err
	}
	if err := embedded.chooseSocket(config.DataDir); err != nil {
		embedded.release()
		return nil, err
	}
	server, err := embed.StartEtcd(serverConfig(config, embedded.socket, logger))
	if err != nil {
		embedded.release()
		return nil, fmt.Errorf("starting etcd in %s: %w", config.DataDir, err)
	}
	embedded.server = server
	if err := embedded.waitReady(ctx); err != nil {
		embedded.Stop()
		return nil, fmt.Errorf("starting etcd in %s: %w", config.DataDir, err)
	}
	return embedded, nil
}

// Client says how to reach the server: over gRPC, since etcd's in-process client loses events under load.
func (e *Embedded) Client() ClientConfig {
	return ClientConfig{Endpoints: []string{"unix://" + e.socket}}
}

// Err yields an error if the server fails, and is closed once it has stopped.
func (e *Embedded) Err() <-chan error { return e.server.Err() }

// Stop stops the server and waits for it. Close the clients first: open watches delay it by seconds.
func (e *Embedded) Stop() {
	e.log.SetLevel(zap.FatalLevel) // that its listeners are closed is no error now
	e.server.Close()
	e.release()
}

func (e *Embedded) waitReady(ctx context.Context) error {
	select {
	case <-e.server.Server.ReadyNotify():
		return nil
	case err := <-e.server.Err():
		return err
	case <-e.server.Server.StopNotify():
		return errors.New("it stopped before it was ready")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// makePrivate creates the directory, or closes one that is there: the socket in it must be out of reach.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return fmt.Errorf("creating the data directory: %w", err)
	}
	if err := os.Chmod(dir, privateDir); err != nil {
		return fmt.Errorf("closing the data directory to others: %w", err)
	}
	return nil
}

// lockDir keeps a second server out: etcd itself would take the first one's socket away, and then
// wait for the database without end.
func (e *Embedded) lockDir(dataDir string) error {
	lock, err := fileutil.TryLockFile(filepath.Join(dataDir, "lock"), os.O_RDWR|os.O_CREATE, fileutil.PrivateFileMode)
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("the data directory %s is in use by another process", dataDir)
	}
	if err != nil {
		return fmt.Errorf("locking the data directory: %w", err)
	}
	e.lock = lock
	return nil
}

// chooseSocket puts the socket into the data directory, or into a directory of its own if that path
// is longer than an address may be.
func (e *Embedded) chooseSocket(dataDir string) error {
	const name = "client.sock"
	absolute, err := filepath.Abs(dataDir)
	if err != nil {
		return fmt.Errorf("resolving the data directory: %w", err)
	}
	if e.socket = filepath.Join(absolute, name); len(e.socket) <= longestSocketPath {
		return nil
	}
	if e.socketDir, err = os.MkdirTemp("", "krop-etcd-"); err != nil {
		return fmt.Errorf("creating a directory for etcd's socket: %w", err)
	}
	e.socket = filepath.Join(e.socketDir, name)
	return nil
}

func (e *Embedded) release() {
	if e.socketDir != "" {
		_ = os.RemoveAll(e.socketDir)
	}
	_ = e.lock.Close()
}

func serverConfig(config EmbeddedConfig, socket string, logger *zap.Logger) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "krop"
	cfg.Dir = config.DataDir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	cfg.QuotaBackendBytes = quotaBytes
	cfg.BootstrapDefragThresholdMegabytes = defragmentAtStart
	cfg.UnsafeNoFsync = config.UnsafeNoFsync
	cfg.EnableGRPCGateway = false

	// A single member never talks to a peer: it advertises an address, and listens on none.
	cfg.ListenPeerUrls = nil
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	return cfg
}

// quietLogger logs to stderr what is at least this bad; the level can be changed later.
func quietLogger(level string) (*zap.Logger, zap.AtomicLevel, error) {
	config := logutil.DefaultZapLoggerConfig
	config.Level = zap.NewAtomicLevelAt(logutil.ConvertToZapLevel(level))
	logger, err := config.Build()
	if err != nil {
		return nil, config.Level, fmt.Errorf("making etcd's logger: %w", err)
	}
	return logger, config.Level, nil
}
