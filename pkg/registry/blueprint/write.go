package blueprint

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

// write is one request's way through compiling and publishing.
type write struct {
	rest     *REST
	key      v1alpha1.InstanceKey
	dryRun   bool
	unlock   func()
	compiled *Compiled
	examined bool // by the compiler
}

// admit compiles the blueprint that is about to be stored (in place of old, if that isn't nil), and puts finalizer
// and status into it. Nothing is written anywhere before it has passed.
func (w *write) admit(ctx context.Context, object, old *unstructured.Unstructured) error {
	blueprint, err := decode(object)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := w.checkBounds(object, old); err != nil {
		return err
	}
	w.examined = true
	compiled, err := w.examine(ctx, object, old, blueprint)
	if err != nil {
		return err
	}
	changed, err := withStatus(object, compiledStatus(compiled, object.GetGeneration()))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !slices.Contains(changed.GetFinalizers(), v1alpha1.Finalizer) {
		changed.SetFinalizers(append(changed.GetFinalizers(), v1alpha1.Finalizer))
	}
	object.Object = changed.Object
	w.compiled = compiled
	return nil
}

// publish offers the stored blueprint. From here on a failure is a condition and a warning, and the
// loop's work.
func (w *write) publish(ctx context.Context, stored *unstructured.Unstructured) (runtime.Object, error) {
	if w.dryRun {
		return stored, nil
	}
	recorded, err := w.rest.offer(ctx, stored, w.compiled)
	if err != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("stored, but not published yet; krop goes on trying: %v", err))
	}
	if recorded == nil {
		return stored, nil
	}
	return recorded, nil
}

// offer serves and publishes a compiled blueprint, and records what came of it. It returns the
// blueprint as it is stored then, and the first error.
func (r *REST) offer(ctx context.Context, stored *unstructured.Unstructured, compiled *Compiled) (*unstructured.Unstructured, error) {
	before, err := decode(stored)
	if err != nil {
		return nil, err
	}
	identityHash, failure := r.offering.Offer(ctx, compiled, wasPublished(before))
	status := publishedStatus(compiled, stored.GetGeneration(), identityHash)
	if failure == nil {
		r.kept.keep(ctx, registry.KeyOf(r.export, stored), compiled)
	} else {
		status = failedStatus(v1alpha1.ConditionPublished, v1alpha1.ReasonPublishFailed, stored.GetGeneration(), failure)
	}
	recorded, err := r.record(ctx, stored, status)
	if failure == nil {
		failure = err
	}
	return recorded, failure
}

// record writes a blueprint's status. Another replica that offers the same blueprint may have written it meanwhile:
// then it is written onto what is stored now, as long as that is the same generation of it.
func (r *REST) record(ctx context.Context, stored *unstructured.Unstructured, set func(*v1alpha1.ResourceGraphDefinitionStatus)) (*unstructured.Unstructured, error) {
	recorded, err := r.recordOnto(ctx, stored, set)
	if !apierrors.IsConflict(err) {
		return recorded, err
	}
	current, gone := r.records.Get(ctx, registry.KeyOf(r.export, stored))
	if gone != nil || current.GetUID() != stored.GetUID() || current.GetGeneration() != stored.GetGeneration() {
		return nil, err
	}
	return r.recordOnto(ctx, current, set)
}

func (r *REST) recordOnto(ctx context.Context, stored *unstructured.Unstructured, set func(*v1alpha1.ResourceGraphDefinitionStatus)) (*unstructured.Unstructured, error) {
	changed, err := withStatus(stored, set)
	if err != nil {
		return nil, err
	}
	return r.records.Record(ctx, changed)
}
