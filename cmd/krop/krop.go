package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/gc"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
	"go.opendefense.cloud/krop/pkg/registry/instance"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// krop is the parts of a running server, and who knows whom.
type krop struct {
	storage  *storage
	kcp      *kcp
	catalog  *registry.Catalog
	locks    *registry.Locks
	leases   leases
	loop     *gc.Loop
	compiler *blueprint.Compiler
	offering *blueprint.Offering
	routing  *publish.Prover
	kinds    *gc.Kinds
	resync   time.Duration // of blueprints

	published *published
}

// assemble makes the parts. It starts nothing.
func assemble(config *apiserver.Config, storage *storage, kcp *kcp) *krop {
	k := &krop{storage: storage, kcp: kcp, catalog: &registry.Catalog{}, locks: &registry.Locks{}, resync: config.Options.Resync, published: newPublished(kcp.planes)}
	composer := compose.New(kcp.planes, compose.Options{})
	k.leases = leasesOf(storage)
	k.loop = gc.New(gc.Config{
		Composer: composer, Planes: kcp.planes, Sources: kcp.planes, Bindings: loopBindings{kcp.bindings},
		Ownership: k.leases.ownership(), StorageSince: storage.since, Installation: storage.installation, Resync: config.Options.Resync,
	})
	kcp.bindings.Subscribe(k.claimsChanged)
	builder := &instance.Builder{
		NewStore: k.newStore, Composer: composer,
		Namespaces: instance.RememberNamespaces(instance.PlaneNamespaces{Planes: kcp.planes}),
		Nesting:    registry.Nesting{Catalog: k.catalog, Limits: config.Options.Limits},
		Locks:      k.locks, Timeout: config.Options.ComposeTimeout, Limits: config.Options.Limits, Reads: k.loop.Reads, Composed: k.loop.Composed,
	}
	k.compiler = &blueprint.Compiler{
		Schemas: blueprint.PlaneSchemas(kcp.planes), Claims: kcp.publisher.Claims, Origins: kcp.publisher.Origins, Installation: storage.installation, Limits: config.Options.Limits,
	}
	k.offering = &blueprint.Offering{
		Catalog: k.catalog, Storage: builder, Publisher: kcp.publisher, Consumers: kcp.bindings, Rights: kcp.planes, Loop: followed{k.loop, kcp, k.published},
	}
	k.kinds = followKinds(kcp.planes, config.Host != nil)
	k.routing = &publish.Prover{Bindings: kcp.bindings, Routes: kcp.routes}
	return k
}

// dependencies is what the HTTP server asks of the other parts.
func (k *krop) dependencies() apiserver.Dependencies {
	return apiserver.Dependencies{
		Catalog:  k.catalog,
		Bindings: k.kcp.bindings,
		Reviewer: apiserver.NewReviewer(k.reviewConfig),
		Asked:    k.kcp.routes.Observe,
		Live:     []healthz.HealthChecker{apiserver.Ticking("loop", gc.StalledAfter, k.loop.Tick)},
		Ready: []healthz.HealthChecker{
			apiserver.Probe("storage", k.storage.Check),
			apiserver.Probe("kcp", k.kcp.publisher.ProveRouting),
		},
	}
}

func (k *krop) newStore(of *kind.Kind, export v1alpha1.ExportKey) (*kind.Store, error) {
	return kind.NewStore(of, kind.StoreOptions{
		Backend: k.storage.Backend, ExportCluster: export.Cluster,
		Allowed: engine.MarkKeys(), ClaimLabels: k.kcp.bindings.WithClaimLabels,
	})
}

func (k *krop) reviewConfig(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name) (*rest.Config, error) {
	return k.kcp.planes.Config(ctx, v1alpha1.TargetConsumer, export, cluster)
}

// followed starts and stops, with the loop over an export's instances, following who has bound it.
type followed struct {
	loop      *gc.Loop
	kcp       *kcp
	published *published
}

// Serve implements blueprint.Loop.
func (f followed) Serve(export v1alpha1.ExportKey, program *engine.Program, records *registry.Records) error {
	f.loop.Serve(export, program, records)
	f.published.watch(export, program.Blueprint)
	if err := f.kcp.bindings.Track(export); err != nil {
		return fmt.Errorf("following the bindings of %s: %w", export.Name, err)
	}
	return nil
}

// Stop implements blueprint.Loop. An export of the same name may come again, elsewhere and unproven.
func (f followed) Stop(export v1alpha1.ExportKey) {
	f.loop.Stop(export)
	f.published.unwatch(export)
	f.kcp.bindings.Untrack(export)
	f.kcp.routes.Forget(export)
	f.kcp.endpoints.Forget(export)
}

// claimsChanged has the loop look at what kcp shows to whom.
func (k *krop) claimsChanged(event publish.BindingEvent) {
	if event.Type == publish.BindingsListed {
		k.loop.ClaimsKnown()
		return
	}
	k.loop.ClaimsChanged(event.Cluster)
}

// Again implements blueprint.Loop.
func (f followed) Again(export v1alpha1.ExportKey) { f.loop.Again(export) }

// loopBindings is the bindings as the loop sees them.
type loopBindings struct{ *publish.Bindings }

// Subscribe implements gc.Bindings.
func (b loopBindings) Subscribe(changed func(v1alpha1.ExportKey, logicalcluster.Name, bool)) {
	b.Bindings.Subscribe(func(event publish.BindingEvent) {
		if event.Type == publish.BindingsListed {
			return
		}
		changed(event.Export, event.Cluster, event.Type != publish.BindingRemoved)
	})
}
