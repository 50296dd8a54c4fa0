package blueprint

import (
	"context"
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
	// Publish makes the export offer the program, and returns the export's identity hash. Writes only what differs.
	Publish(ctx context.Context, program *engine.Program, claims []v1alpha1.PermissionClaim) (identityHash string, err error)
	// Unpublish deletes the export and what belongs to it.
	Unpublish(ctx context.Context, export v1alpha1.ExportKey) error
}

// Loop looks after the instances of what is served. pkg/gc implements it.
type Loop interface {
	Serve(export v1alpha1.ExportKey, program *engine.Program, records *registry.Records)
	Stop(export v1alpha1.ExportKey)
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
	Loop      Loop

	mutex sync.Mutex
}

// Check refuses a program that can't be offered: its export is another blueprint's, or krop lacks rights.
func (o *Offering) Check(ctx context.Context, compiled *Compiled) error {
	program := compiled.Program
	if served, ok := o.Catalog.Lookup(program.Export); ok && served.Program.Blueprint != program.Blueprint {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("resourcegraphdefinitions").GroupResource(), program.Blueprint,
			fmt.Errorf("APIExport %s of this workspace is published by blueprint %q", program.Export.Name, served.Program.Blueprint))
	}
	return o.Publisher.Check(ctx, program)
}

// Offer serves the program and publishes it, in this order, so that kcp never routes a request that
// krop doesn't know of.
func (o *Offering) Offer(ctx context.Context, compiled *Compiled) (identityHash string, err error) {
	if err := o.Serve(ctx, compiled.Program); err != nil {
		return "", err
	}
	return o.Publisher.Publish(ctx, compiled.Program, compiled.Claims)
}

// Serve starts to serve the program, or swaps it for the one that is served. Requests in flight
// finish with the program they began with.
func (o *Offering) Serve(ctx context.Context, program *engine.Program) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	served, err := o.serve(ctx, program)
	if err != nil {
		return fmt.Errorf("serving %s: %w", program.Export.Name, err)
	}
	o.Catalog.Set(served)
	o.Loop.Serve(program.Export, program, served.Records)
	return nil
}

func (o *Offering) serve(ctx context.Context, program *engine.Program) (*registry.Served, error) {
	present, ok := o.Catalog.Lookup(program.Export)
	if !ok {
		return o.Storage.Build(ctx, program)
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

// Instances counts the instances of an export.
func (o *Offering) Instances(ctx context.Context, export v1alpha1.ExportKey) (int, error) {
	if served, ok := o.Catalog.Lookup(export); ok {
		instances, err := served.Records.List(ctx)
		return len(instances), err
	}
	if o.Catalog.Held(export) {
		return 0, fmt.Errorf("%s can't be served now", export.Name)
	}
	return 0, nil
}

// ErrInstancesLeft says that a blueprint has to wait for its instances to go.
type ErrInstancesLeft struct{ Count int }

// Error counts them.
func (e ErrInstancesLeft) Error() string {
	return fmt.Sprintf("%d instances are still being deleted", e.Count)
}

// Withdraw unpublishes an export and stops serving it, if no instance is left. If some are, it asks
// for their deletion, and fails with ErrInstancesLeft.
func (o *Offering) Withdraw(ctx context.Context, export v1alpha1.ExportKey) error {
	if o.Catalog.Held(export) {
		return fmt.Errorf("%s can't be served now, so that its instances can't be torn down", export.Name)
	}
	served, ok := o.Catalog.Lookup(export)
	if !ok {
		return o.Publisher.Unpublish(ctx, export)
	}
	served.Gate.Close()
	if err := o.withdraw(ctx, served); err != nil {
		served.Gate.Open()
		return err
	}
	return nil
}

// withdraw ends what is served, behind its closed gate.
func (o *Offering) withdraw(ctx context.Context, served *registry.Served) error {
	if err := deleteInstances(ctx, served); err != nil {
		return err
	}
	if err := o.Publisher.Unpublish(ctx, served.Export); err != nil {
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.Loop.Stop(served.Export)
	o.Catalog.Remove(served.Export)
	registry.DestroyLater(served)
	return nil
}

func deleteInstances(ctx context.Context, served *registry.Served) error {
	instances, err := served.Records.List(ctx)
	if err != nil {
		return err
	}
	for i := range instances {
		if instances[i].GetDeletionTimestamp() != nil {
			continue
		}
		if err := served.Records.Delete(ctx, registry.KeyOf(served.Export, &instances[i])); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if len(instances) > 0 {
		return ErrInstancesLeft{Count: len(instances)}
	}
	return nil
}

// exportOf names the export of a stored blueprint; its name is empty if it was never compiled.
func exportOf(blueprint *unstructured.Unstructured) v1alpha1.ExportKey {
	name, _, _ := unstructured.NestedString(blueprint.Object, "status", "exportedAPI")
	return v1alpha1.ExportKey{Cluster: logicalcluster.From(blueprint), Name: name}
}
