package blueprint

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// Ensure brings one stored blueprint to what it says: served and published, or withdrawn if it is
// being deleted; what is served of one that is gone is forgotten. The loop calls it for each blueprint at
// start, whenever one has changed, and now and then. What is as it should be costs a few reads.
// exists says whether the blueprint is stored; an error is worth a retry.
func (r *REST) Ensure(ctx context.Context, key v1alpha1.InstanceKey) (exists bool, err error) {
	unlock, err := r.locks.Lock(ctx, key)
	if err != nil {
		return true, err
	}
	defer unlock()
	stored, err := r.records.Get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		r.refusals.Delete(key)
		return false, errors.Join(r.offering.Forget(ctx, key.Cluster, key.Name), r.kept.forget(ctx, key))
	case err != nil:
		return true, err
	case stored.GetDeletionTimestamp() != nil:
		return true, r.ensureGone(ctx, stored)
	default:
		return true, r.ensureOffered(ctx, key, stored)
	}
}

// ensureGone withdraws a blueprint. Its instances can be read, and deleted by their consumers, until they
// are gone, so after a restart it has to be served first. One that doesn't compile any more is withdrawn all
// the same.
func (r *REST) ensureGone(ctx context.Context, stored *unstructured.Unstructured) error {
	blueprint, err := decode(stored)
	if err != nil {
		return err
	}
	owns, err := r.offering.owns(ctx, blueprint)
	if err != nil {
		return err
	}
	if _, served := r.offering.Catalog.Lookup(exportOf(stored)); !served && owns {
		if err := r.serveAgain(ctx, blueprint); err != nil {
			klog.FromContext(ctx).Info("blueprint is withdrawn without being served", "blueprint", blueprint.Name, "err", err)
			r.offering.Catalog.Hold(exportOf(stored), blueprint.Name)
		}
	}
	return r.withdraw(ctx, stored)
}

func (r *REST) serveAgain(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) error {
	compiled, err := r.compiler.Compile(ctx, exportKey(blueprint).Cluster, blueprint)
	if err != nil {
		return err
	}
	return r.offering.Serve(ctx, compiled.Program)
}

func (r *REST) ensureOffered(ctx context.Context, key v1alpha1.InstanceKey, stored *unstructured.Unstructured) error {
	blueprint, err := decode(stored)
	if err != nil {
		return err
	}
	compiled, err := r.upToDate(ctx, key, blueprint)
	if err != nil {
		return r.compileFailed(ctx, stored, err)
	}
	if cycle := r.offering.Catalog.Cycle(compiled.Program); cycle != nil {
		return r.ensureInLoop(ctx, stored, compiled.Program, cycle)
	}
	recorded, err := r.offer(ctx, stored, compiled)
	if err != nil {
		r.holdUnserved(stored, err)
		return err
	}
	// A blueprint that doesn't compile is an error here, so that it is tried again: not all that may repair it is heard of.
	return errors.Join(compiled.Outdated, r.ensureRouted(ctx, recorded))
}

// offered is what is served and was published of the blueprint; nil if that isn't what its spec says.
func (r *REST) offered(blueprint *v1alpha1.ResourceGraphDefinition) *Compiled {
	if blueprint.Status.ObservedSpecHash != engine.SpecHash(blueprint.Spec) ||
		!meta.IsStatusConditionTrue(blueprint.Status.Conditions, v1alpha1.ConditionPublished) {
		return nil
	}
	return r.served(blueprint)
}

// served is what is served of the blueprint; nil if that isn't what its spec says. It is published again each
// time: somebody may have taken away or changed what is in kcp.
func (r *REST) served(blueprint *v1alpha1.ResourceGraphDefinition) *Compiled {
	served, ok := r.offering.Catalog.Lookup(exportKey(blueprint))
	if !ok || served.Blueprint() != blueprint.Name || served.Program.SpecHash != engine.SpecHash(blueprint.Spec) {
		return nil
	}
	return &Compiled{Program: served.Program, Claims: blueprint.Status.PermissionClaims}
}

// compileFailed says so in the blueprint's conditions. What was served goes on being served; an
// export that isn't is held, so that its instances are not taken for gone.
func (r *REST) compileFailed(ctx context.Context, stored *unstructured.Unstructured, cause error) error {
	r.holdUnserved(stored, cause)
	if apierrors.IsInvalid(cause) {
		_, err := r.record(ctx, stored, failedStatus(v1alpha1.ConditionCompiled, v1alpha1.ReasonCompileFailed, stored.GetGeneration(), cause))
		return errors.Join(cause, err)
	}
	return cause
}

// Expect says that a blueprint is stored, and will be looked at. Until it is, its export isn't taken for gone:
// another replica may have served it for a while. One that was never published has no instances, and may be one that
// came second to another of the same export.
func (r *REST) Expect(stored *unstructured.Unstructured) {
	if hash, _, _ := unstructured.NestedString(stored.Object, "status", "observedSpecHash"); hash != "" {
		r.holdUnserved(stored, nil)
	}
}

// holdUnserved keeps the export of a blueprint that could not be served from being taken for gone.
func (r *REST) holdUnserved(stored *unstructured.Unstructured, cause error) {
	export := exportOf(stored)
	if _, served := r.offering.Catalog.Lookup(export); served || export.Name == "" {
		return
	}
	r.offering.Catalog.Hold(export, stored.GetName())
	if plane.IsTransient(cause) {
		r.offering.Catalog.Await(export)
	}
}

// ensureRouted proves, once somebody has bound the export, that kcp routes its kind to krop. That
// can't be known earlier: kcp routes nothing without a binding, and with the CacheAPIs gate off it
// would serve the kind as an ordinary CRD without a word.
func (r *REST) ensureRouted(ctx context.Context, stored *unstructured.Unstructured) error {
	blueprint, err := decode(stored)
	if err != nil {
		return err
	}
	if meta.IsStatusConditionTrue(blueprint.Status.Conditions, v1alpha1.ConditionServing) {
		return nil
	}
	served, ok := r.offering.Catalog.Lookup(exportOf(stored))
	if !ok {
		return nil
	}
	bound, failure := r.routing.Routed(ctx, served.Export, served.Kind.GVR())
	if !bound {
		return nil
	}
	_, err = r.record(ctx, stored, servingStatus(failure, stored.GetGeneration()))
	return errors.Join(failure, err)
}
