package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/gc"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// homePoll is how often kcp is asked for krop's own export until it is there: kcp may start later
// than krop, and krop bootstrap may be run later still.
const homePoll = time.Second

// serveBlueprints serves the blueprint kind, and keeps what is published in step with what is stored.
func (k *krop) serveBlueprints(ctx context.Context) error {
	home, err := k.waitForHome(ctx)
	if err != nil {
		return err
	}
	main, err := k.serveHome(ctx, home)
	if err != nil {
		return fmt.Errorf("the blueprint kind: %w", err)
	}
	blueprints := gc.NewBlueprints(gc.BlueprintsConfig{
		Stored: main.Records(),
		KeyOf: func(stored *unstructured.Unstructured) v1alpha1.InstanceKey {
			return registry.KeyOf(home, stored)
		},
		Expect: main.Expect,
		Ensure: main.Ensure,
		Kinds:  k.kinds,
		Uses:   main.Uses,
		Loaded: k.catalog.MarkSynced,
		Resync: k.resync,
	})
	unsubscribe := k.kcp.bindings.Subscribe(func(event publish.BindingEvent) {
		served, ok := k.catalog.Lookup(event.Export)
		if ok && served.Program != nil && (event.Type == publish.BindingAdded || event.Type == publish.BindingRemoved) {
			blueprints.Enqueue(v1alpha1.InstanceKey{Export: home, Cluster: event.Export.Cluster, Name: served.Program.Blueprint})
		}
	})
	defer unsubscribe()
	k.published.subscribe(func(export v1alpha1.ExportKey, name string) {
		blueprints.Enqueue(v1alpha1.InstanceKey{Export: home, Cluster: export.Cluster, Name: name})
	})
	defer k.published.close()
	return blueprints.Run(ctx)
}

// waitForHome waits until kcp knows krop's own export.
func (k *krop) waitForHome(ctx context.Context) (home v1alpha1.ExportKey, err error) {
	said := false
	err = wait.PollUntilContextCancel(ctx, homePoll, true, func(ctx context.Context) (bool, error) {
		found, err := k.kcp.publisher.Home(ctx)
		if err != nil {
			if !said {
				klog.FromContext(ctx).Info("waiting for krop's own export in kcp", "err", err)
			}
			said = true
			return false, nil
		}
		home = found
		return true, nil
	})
	return home, err
}

// homeReadyTimeout bounds how long the blueprint kind's watch cache may take to read what is stored.
const homeReadyTimeout = 30 * time.Second

// serveHome serves the blueprint kind from krop's own export.
func (k *krop) serveHome(ctx context.Context, home v1alpha1.ExportKey) (*blueprint.REST, error) {
	definition, err := manifests.Blueprint()
	if err != nil {
		return nil, err
	}
	of, err := kind.New(definition)
	if err != nil {
		return nil, err
	}
	store, err := kind.NewStore(of, kind.StoreOptions{
		Backend: k.storage.Backend, ExportCluster: home.Cluster, Allowed: []string{v1alpha1.AnnotationForceDelete},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, homeReadyTimeout)
	defer cancel()
	if err := store.WaitReady(ctx); err != nil {
		store.Destroy()
		return nil, err
	}
	if err := k.kcp.bindings.Track(home); err != nil {
		store.Destroy()
		return nil, err
	}
	return k.catalogHome(home, of, store), nil
}

// compiledFolder is where etcd has what blueprints were compiled against.
const compiledFolder = "compiled-against"

func (k *krop) catalogHome(home v1alpha1.ExportKey, of *kind.Kind, store *kind.Store) *blueprint.REST {
	main := blueprint.NewREST(blueprint.Config{
		Kind: of, Store: store, Export: home, Locks: k.locks,
		Compiler: k.compiler, Offering: k.offering, Routing: k.routing, Changes: k.kinds, Values: k.storage.Values(compiledFolder),
	})
	resource := of.GVR().Resource
	k.catalog.Set(&registry.Served{
		Export: home, Kind: of, Records: main.Records(),
		Storage: map[string]rest.Storage{resource: main, resource + "/status": registry.NewStatusREST(main)},
	})
	return main
}
