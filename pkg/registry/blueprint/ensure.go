package blueprint

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Ensure brings one stored blueprint to what it says: served and published, or withdrawn if it is
// being deleted. The loop calls it for each blueprint at start, and whenever one has changed; what a
// request has done already costs a few reads. An error is worth a retry.
func (r *REST) Ensure(ctx context.Context, key v1alpha1.InstanceKey) error {
	unlock, err := r.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := r.records.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if stored.GetDeletionTimestamp() != nil {
		return r.ensureGone(ctx, stored)
	}
	return r.ensureOffered(ctx, key, stored)
}

// ensureGone withdraws a blueprint. Its instances are torn down by the program that is served, so
// after a restart that has to be served first.
func (r *REST) ensureGone(ctx context.Context, stored *unstructured.Unstructured) error {
	export := exportOf(stored)
	if _, served := r.offering.Catalog.Lookup(export); !served && export.Name != "" {
		compiled, err := r.compile(ctx, stored)
		if err != nil {
			r.offering.Catalog.Hold(export)
			return err
		}
		if err := r.offering.Serve(ctx, compiled.Program); err != nil {
			return err
		}
	}
	return r.withdraw(ctx, stored)
}

func (r *REST) ensureOffered(ctx context.Context, key v1alpha1.InstanceKey, stored *unstructured.Unstructured) error {
	blueprint, err := decode(stored)
	if err != nil {
		return err
	}
	if r.isOffered(key, blueprint) {
		return r.ensureRouted(ctx, stored, blueprint)
	}
	compiled, err := r.compiler.Compile(ctx, key.Cluster, blueprint)
	if err != nil {
		return r.compileFailed(ctx, stored, err)
	}
	_, err = r.offer(ctx, stored, compiled)
	return err
}

// isOffered says whether the stored spec is what is served, and is known to be published.
func (r *REST) isOffered(key v1alpha1.InstanceKey, blueprint *v1alpha1.ResourceGraphDefinition) bool {
	served, ok := r.offering.Catalog.Lookup(v1alpha1.ExportKey{Cluster: key.Cluster, Name: blueprint.Status.ExportedAPI})
	hash := engine.SpecHash(blueprint.Spec)
	return ok && served.Program.SpecHash == hash && blueprint.Status.ObservedSpecHash == hash
}

// compileFailed says so in the blueprint's conditions. What was served goes on being served; an
// export that isn't is held, so that its instances are not taken for gone.
func (r *REST) compileFailed(ctx context.Context, stored *unstructured.Unstructured, cause error) error {
	export := exportOf(stored)
	if _, served := r.offering.Catalog.Lookup(export); !served && export.Name != "" {
		r.offering.Catalog.Hold(export)
	}
	if apierrors.IsInvalid(cause) {
		_, err := r.record(ctx, stored, failedStatus(v1alpha1.ConditionCompiled, v1alpha1.ReasonCompileFailed, stored.GetGeneration(), cause))
		return errors.Join(cause, err)
	}
	return cause
}

func (r *REST) compile(ctx context.Context, stored *unstructured.Unstructured) (*Compiled, error) {
	blueprint, err := decode(stored)
	if err != nil {
		return nil, err
	}
	return r.compiler.Compile(ctx, exportOf(stored).Cluster, blueprint)
}

// ensureRouted proves, once somebody has bound the export, that kcp routes its kind to krop. That
// can't be known earlier: kcp routes nothing without a binding, and with the CacheAPIs gate off it
// would serve the kind as an ordinary CRD without a word.
func (r *REST) ensureRouted(ctx context.Context, stored *unstructured.Unstructured, blueprint *v1alpha1.ResourceGraphDefinition) error {
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
	_, err := r.record(ctx, stored, servingStatus(failure, stored.GetGeneration()))
	return errors.Join(failure, err)
}
