package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

func TestEtcdThatStopsWithoutAReasonEndsKropWithAnError(t *testing.T) {
	stopped := make(chan error)
	close(stopped)
	err := endOf(t.Context(), stopped)
	if err == nil || errors.Unwrap(err) == nil {
		t.Errorf("krop ends with: %v", err)
	}
	reason := errors.New("no space left")
	failed := make(chan error, 1)
	failed <- reason
	if err := endOf(t.Context(), failed); !errors.Is(err, reason) {
		t.Errorf("krop ends with: %v", err)
	}
}

// TestShutdownEndsWatchesBeforeStorage stops as serve does, with a watch of what is served still open.
func TestShutdownEndsWatchesBeforeStorage(t *testing.T) {
	storage, err := openStorage(t.Context(), apiserver.Etcd{DataDir: filepath.Join(t.TempDir(), "data")})
	if err != nil {
		t.Fatal(err)
	}
	catalog := &registry.Catalog{}
	store := serveOne(t, storage, catalog)
	watched, err := store.Main.Watch(etcd.WithCluster(t.Context(), etcd.Wildcard), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stopCaches(catalog)
	select {
	case _, open := <-watched.ResultChan():
		if open {
			t.Error("an event of nothing")
		}
	case <-time.After(time.Second):
		t.Error("the watch cache was not stopped")
	}
	if err := storage.Check(t.Context()); err != nil {
		t.Errorf("storage is closed before the watches: %v", err)
	}
	began := time.Now()
	storage.close()
	if took := time.Since(began); took > time.Second {
		t.Errorf("closing storage took %s", took)
	}
}

func serveOne(t *testing.T, storage *storage, catalog *registry.Catalog) *kind.Store {
	t.Helper()
	definition, err := manifests.Blueprint()
	if err != nil {
		t.Fatal(err)
	}
	of, err := kind.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	export := v1alpha1.ExportKey{Cluster: "provider1", Name: definition.Name}
	store, err := kind.NewStore(of, kind.StoreOptions{Backend: storage.Backend, ExportCluster: export.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	records := registry.NewRecords(export, of, store, &registry.Locks{})
	catalog.Set(&registry.Served{Export: export, Kind: of, Records: records})
	return store
}
