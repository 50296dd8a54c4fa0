package blueprint

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Publisher offers programs in kcp. pkg/publish implements it.
type Publisher interface {
	// Check fails as Publish would, as far as that can be known without writing.
	Check(ctx context.Context, program *engine.Program) error
	// CheckOwner fails with Conflict if the export exists and isn't the blueprint's.
	CheckOwner(ctx context.Context, export v1alpha1.ExportKey, blueprint string) error
	// Publish makes the export offer the program, and returns the export's identity hash. Writes only what differs.
	Publish(ctx context.Context, program *engine.Program, claims []v1alpha1.PermissionClaim) (identityHash string, err error)
	// Unpublish deletes the export and what belongs to it, as far as it is the blueprint's.
	Unpublish(ctx context.Context, export v1alpha1.ExportKey, blueprint string) error
}

// Loop looks after the instances of what is served. pkg/gc implements it.
type Loop interface {
	// Serve starts, or goes on with another program. An error says that something is missing yet that
	// the same call may bring later.
	Serve(export v1alpha1.ExportKey, program *engine.Program, records *registry.Records) error
	Stop(export v1alpha1.ExportKey)
	// Again has all instances looked at.
	Again(export v1alpha1.ExportKey)
}

// Storage makes the storage that a program's instances are served from.
type Storage interface {
	// Build makes it anew.
	Build(ctx context.Context, program *engine.Program) (*registry.Served, error)
	// Swap returns present with the program replaced, or false if the program's kind differs from
	// the one that present serves, so that it has to be built anew.
	Swap(present *registry.Served, program *engine.Program) (*registry.Served, bool, error)
}

// Offering is what is served and published. Its methods may be called concurrently; for one export
// they take turns.
type Offering struct {
	Catalog   *registry.Catalog
	Storage   Storage
	Publisher Publisher
	Rights    Rights
	Loop      Loop
	Consumers Consumers

	locks registry.KeyedLocks[v1alpha1.ExportKey]
	// bare is what is withdrawn without being served, by export (*registry.Served).
	bare sync.Map
}

// checkPublishing refuses a program that can't be published: its export is another blueprint's, or krop's user lacks
// rights for it.
func (o *Offering) checkPublishing(ctx context.Context, program *engine.Program) error {
	if err := o.refuseOther(program); err != nil {
		return err
	}
	return o.Publisher.Check(ctx, program)
}

// refuseOther fails with Conflict if the program's export is known to be another blueprint's, or krop's own.
func (o *Offering) refuseOther(program *engine.Program) error {
	owner, known := o.Catalog.OwnerOf(program.Export)
	if !known || owner == program.Blueprint {
		return nil
	}
	cause := fmt.Errorf("APIExport %s of this workspace is published by blueprint %q", program.Export.Name, owner)
	if owner == "" {
		cause = fmt.Errorf("APIExport %s of this workspace is krop's own", program.Export.Name)
	}
	return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("resourcegraphdefinitions").GroupResource(), program.Blueprint, cause)
}

// Offer serves the program and publishes it, in this order, so that kcp never routes a request that
// krop doesn't know of. What turns out to be published by another blueprint is not served: the
// instances that are stored are the other's.
func (o *Offering) Offer(ctx context.Context, compiled *Compiled, published bool) (identityHash string, err error) {
	program := compiled.Program
	_, served := o.Catalog.Lookup(program.Export)
	if !served && !published {
		if err := o.Publisher.CheckOwner(ctx, program.Export, program.Blueprint); apierrors.IsConflict(err) {
			return "", err
		}
	}
	if err := o.Serve(ctx, program); err != nil {
		return "", err
	}
	identityHash, err = o.Publisher.Publish(ctx, program, compiled.Claims)
	if !served && apierrors.IsConflict(err) && apierrors.IsConflict(o.Publisher.CheckOwner(ctx, program.Export, program.Blueprint)) {
		return "", errors.Join(err, o.stop(ctx, program.Export, program.Blueprint))
	}
	return identityHash, err
}

// Serve starts to serve the program, or swaps it for the one that is served. Requests in flight
// finish with the program they began with.
func (o *Offering) Serve(ctx context.Context, program *engine.Program) error {
	unlock, err := o.lock(ctx, program.Export)
	if err != nil {
		return err
	}
	defer unlock()
	if err := o.refuseOther(program); err != nil {
		return err
	}
	served, err := o.serve(ctx, program)
	if err != nil {
		return fmt.Errorf("serving %s: %w", program.Export.Name, err)
	}
	o.Catalog.Set(served)
	return o.Loop.Serve(program.Export, program, served.Records)
}

func (o *Offering) serve(ctx context.Context, program *engine.Program) (*registry.Served, error) {
	present, ok := o.Catalog.Lookup(program.Export)
	switch {
	case !ok:
		return o.Storage.Build(ctx, program)
	case present.Program == program:
		return present, nil
	}
	swapped, ok, err := o.Storage.Swap(present, program)
	if ok || err != nil {
		return swapped, err
	}
	built, err := o.Storage.Build(ctx, program)
	if err == nil {
		registry.DestroyLater(present)
	}
	return built, err
}

func (o *Offering) lock(ctx context.Context, export v1alpha1.ExportKey) (unlock func(), err error) {
	if unlock, err = o.locks.Lock(ctx, export); err != nil {
		return nil, registry.Unavailable(export.Name+" is still being set up", err)
	}
	return unlock, nil
}

// Forget stops serving what is served or held for a blueprint that is gone from storage. Nothing is
// unpublished: whoever let the blueprint go has done that.
func (o *Offering) Forget(ctx context.Context, cluster logicalcluster.Name, blueprint string) error {
	for _, export := range o.Catalog.ExportsOf(cluster, blueprint) {
		if err := o.stop(ctx, export, blueprint); err != nil {
			return err
		}
	}
	return nil
}

// stop stops serving and holding an export, if it still is the blueprint's.
func (o *Offering) stop(ctx context.Context, export v1alpha1.ExportKey, blueprint string) error {
	unlock, err := o.lock(ctx, export)
	if err != nil {
		return err
	}
	defer unlock()
	if owner, known := o.Catalog.OwnerOf(export); known && owner != blueprint {
		return nil
	}
	served, ok := o.Catalog.Lookup(export)
	o.Loop.Stop(export)
	o.Catalog.Remove(export)
	if ok {
		registry.DestroyLater(served)
	}
	if bare, ok := o.bare.LoadAndDelete(export); ok {
		registry.DestroyLater(bare.(*registry.Served))
	}
	return nil
}

// exportOf names the export of a stored blueprint; its name is empty if it was never compiled.
func exportOf(blueprint *unstructured.Unstructured) v1alpha1.ExportKey {
	name, _, _ := unstructured.NestedString(blueprint.Object, "status", "exportedAPI")
	return v1alpha1.ExportKey{Cluster: logicalcluster.From(blueprint), Name: name}
}
