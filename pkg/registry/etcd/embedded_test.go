package etcd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startTimeout is generous: machines that run tests are loaded.
const startTimeout = time.Minute

func startEmbedded(t *testing.T, dir string) (*Embedded, *Backend) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	embedded, err := Start(ctx, EmbeddedConfig{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	backend, err := Connect(ctx, BackendConfig{Client: embedded.Client()})
	if err != nil {
		embedded.Stop()
		t.Fatal(err)
	}
	return embedded, backend
}

func TestEmbeddedServerKeepsDataAcrossRestarts(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()

	embedded, backend := startEmbedded(t, dir)
	if _, err := backend.Client().Put(ctx, "/krop/kept", "value"); err != nil {
		t.Fatal(err)
	}
	backend.Close()
	embedded.Stop()

	embedded, backend = startEmbedded(t, dir)
	defer embedded.Stop()
	defer backend.Close()
	if err := backend.Check(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := backend.Client().KV.Get(ctx, "/krop/kept")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Fatalf("after a restart: %v", got.Kvs)
	}
}

func TestEmbeddedServerStopsQuickly(t *testing.T) {
	embedded, backend := startEmbedded(t, t.TempDir())
	backend.Close()
	started := time.Now()
	embedded.Stop()
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if err, open := <-embedded.Err(); open {
		t.Errorf("a stopped server reports %v", err)
	}
}

func TestEmbeddedServerListensOnNoPortAndForThisUserOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	embedded, backend := startEmbedded(t, dir)
	defer embedded.Stop()
	defer backend.Close()

	for _, listener := range embedded.server.Clients {
		if _, ok := listener.Addr().(*net.UnixAddr); !ok {
			t.Errorf("listens for clients on %v", listener.Addr())
		}
	}
	if len(embedded.server.Peers) != 0 {
		t.Errorf("listens for peers: %v", embedded.server.Peers)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != privateDir {
		t.Errorf("the data directory's mode is %v", info.Mode().Perm())
	}
}

func TestEmbeddedServerStartsInADirectoryWithALongName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	embedded, backend := startEmbedded(t, dir)
	backend.Close()
	embedded.Stop()
	if _, err := os.Stat(embedded.socketDir); !os.IsNotExist(err) {
		t.Errorf("the socket's directory %q is still there: %v", embedded.socketDir, err)
	}
}

func TestStartingTwiceInOneDirectoryFails(t *testing.T) {
	dir := t.TempDir()
	embedded, backend := startEmbedded(t, dir)
	defer embedded.Stop()
	defer backend.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	second, err := Start(ctx, EmbeddedConfig{DataDir: dir, UnsafeNoFsync: true})
	if err == nil {
		second.Stop()
		t.Fatal("a second server started on the same data")
	}
	if err := backend.Check(context.Background()); err != nil {
		t.Errorf("the first server is gone: %v", err)
	}
}

func TestConnectFailsWithoutAServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for name, config := range map[string]ClientConfig{
		"no endpoint":             {},
		"certificate without key": {Endpoints: []string{"127.0.0.1:1"}, CertFile: "x"},
		"nobody listens":          {Endpoints: []string{"127.0.0.1:1"}},
		"TLS file missing":        {Endpoints: []string{"127.0.0.1:1"}, TrustedCAFile: filepath.Join(t.TempDir(), "absent")},
	} {
		if backend, err := Connect(ctx, BackendConfig{Client: config}); err == nil {
			backend.Close()
			t.Errorf("%s: connected", name)
		}
	}
}
