package blueprint

import (
	"context"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

// InstancesLeftError says that a blueprint has to wait for its instances to go.
type InstancesLeftError struct {
	// Count of the instances that are stored.
	Count int
	// Deleting says that they are being deleted; otherwise somebody has to delete them.
	Deleting bool
}

// Error counts them.
func (e *InstancesLeftError) Error() string {
	if e.Deleting {
		return fmt.Sprintf("%d instances are still being deleted", e.Count)
	}
	return fmt.Sprintf("%d instances have to be deleted first", e.Count)
}

// Instances counts the instances of a stored blueprint, whether or not it is served, or compiles.
func (o *Offering) Instances(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) (int, error) {
	owns, err := o.owns(ctx, blueprint)
	if err != nil || !owns {
		return 0, err
	}
	served, ok := o.Catalog.Lookup(exportKey(blueprint))
	if !ok {
		if served, err = o.Storage.Build(ctx, bareProgram(blueprint)); err != nil {
			return 0, err
		}
		defer served.Records.Destroy()
	}
	instances, err := served.Records.List(ctx)
	return len(instances), err
}

// owns says whether instances of the blueprint's export are the blueprint's. They are not if it came
// second to another that publishes the same kind.
func (o *Offering) owns(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) (bool, error) {
	export := exportKey(blueprint)
	if export.Name == "" {
		return false, nil // it was never served
	}
	if owner, known := o.Catalog.OwnerOf(export); known {
		return owner == blueprint.Name, nil
	}
	if wasPublished(blueprint) {
		return true, nil
	}
	err := o.Publisher.CheckOwner(ctx, export, blueprint.Name)
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// CloseGate keeps new instances of a blueprint out that is about to be deleted. Reopen lets them in
// again, for a deletion that is refused after all.
func (o *Offering) CloseGate(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) (reopen func(), err error) {
	served, ok := o.Catalog.Lookup(exportKey(blueprint))
	if !ok || served.Blueprint() != blueprint.Name {
		return func() {}, nil
	}
	if err := served.Gate.Close(ctx); err != nil {
		return served.Gate.Open, registry.Unavailable("instances are still being created", err)
	}
	return served.Gate.Open, nil
}

// Withdraw unpublishes a blueprint that is being deleted and stops serving it, if no instance is left.
// If some are, it fails with InstancesLeftError, after asking for their deletion if it is forced.
// No new ones are let in from now on.
func (o *Offering) Withdraw(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) error {
	if owns, err := o.owns(ctx, blueprint); err != nil || !owns {
		return err
	}
	served, err := o.withdrawn(ctx, blueprint)
	if err != nil {
		return err
	}
	if err := served.Gate.Close(ctx); err != nil {
		return fmt.Errorf("waiting for instances that are being created: %w", err)
	}
	if err := o.clear(ctx, served, isForced(blueprint)); err != nil {
		return err
	}
	if err := o.Publisher.Unpublish(ctx, served.Export, blueprint.Name); err != nil {
		return err
	}
	// A replica that had not heard of the deletion may have let instances in until now.
	if err := o.clear(ctx, served, true); err != nil {
		return err
	}
	return o.stop(ctx, served.Export, blueprint.Name)
}

// withdrawn is what is served, or else storage for the same instances that knows of their kind only
// what is needed to tear them down.
func (o *Offering) withdrawn(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) (*registry.Served, error) {
	export := exportKey(blueprint)
	if served, ok := o.Catalog.Lookup(export); ok {
		return served, nil
	}
	if bare, ok := o.bare.Load(export); ok {
		return bare.(*registry.Served), nil
	}
	bare, err := o.Storage.Build(ctx, bareProgram(blueprint))
	if err == nil {
		o.bare.Store(export, bare)
	}
	return bare, err
}

// clear fails while instances are left. With force it asks for their deletion, and has them torn down.
func (o *Offering) clear(ctx context.Context, served *registry.Served, force bool) error {
	instances, err := served.Records.List(ctx)
	if err != nil || len(instances) == 0 {
		return err
	}
	for i := range instances {
		if !force || instances[i].GetDeletionTimestamp() != nil {
			continue
		}
		if err := served.Records.Delete(ctx, registry.KeyOf(served.Export, &instances[i])); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if force { // also what isn't served: their inventories say all that tearing down needs
		if err := o.Loop.Serve(served.Export, served.Program, served.Records); err != nil {
			return err
		}
	}
	return &InstancesLeftError{Count: len(instances), Deleting: force}
}

func exportKey(blueprint *v1alpha1.ResourceGraphDefinition) v1alpha1.ExportKey {
	return v1alpha1.ExportKey{Cluster: logicalcluster.From(blueprint), Name: blueprint.Status.ExportedAPI}
}

// wasPublished says whether the blueprint has been offered in kcp at least once.
func wasPublished(blueprint *v1alpha1.ResourceGraphDefinition) bool {
	return blueprint.Status.ObservedSpecHash != ""
}

func isForced(blueprint *v1alpha1.ResourceGraphDefinition) bool {
	return blueprint.Annotations[v1alpha1.AnnotationForceDelete] == "true"
}
