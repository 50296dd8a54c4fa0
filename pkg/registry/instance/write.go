package instance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// write is one request's way through composing: from the lock to the answer. It keeps the program
// that it began with, whatever is swapped meanwhile.
type write struct {
	rest    *REST
	key     v1alpha1.InstanceKey
	program *engine.Program
	dryRun  bool
	deadlines
	unlock func()
	leave  func() // the gate; nil unless this is a create
}

// begin takes the instance's lock. The caller must call end.
func (r *REST) begin(ctx context.Context, name string, dryRun bool) (*write, error) {
	key, err := registry.KeyIn(ctx, r.program.Load().Export, name)
	if err != nil {
		return nil, err
	}
	until := newDeadlines(time.Now(), r.config.Timeout)
	waiting, cancel := context.WithDeadline(ctx, until.lock)
	defer cancel()
	unlock, err := registry.LockForRequest(ctx, waiting, r.config.Locks, key,
		fmt.Sprintf("another write of %s/%s is still being composed", key.Namespace, key.Name))
	if err != nil {
		return nil, err
	}
	return &write{rest: r, key: key, program: r.program.Load(), dryRun: dryRun, deadlines: until, unlock: unlock}, nil
}

func (w *write) end() {
	w.unlock()
	if w.leave != nil {
		w.leave()
	}
}

// admitNew composes an instance that isn't stored yet.
func (w *write) admitNew(ctx context.Context, instance *unstructured.Unstructured) error {
	if w.leave == nil {
		leave, err := w.rest.gate.Enter()
		if err != nil {
			return err
		}
		w.leave = leave
	}
	if err := w.rest.config.Nesting.AdmitNew(w.program, instance); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, w.deadlines.preflight)
	defer cancel()
	if w.key.Namespace != "" {
		if err := w.rest.config.Namespaces.Check(ctx, w.key.Export, w.key.Cluster, w.key.Namespace); err != nil {
			return err
		}
	}
	return w.admit(ctx, instance, nil)
}

// admitChanged composes a stored instance anew. One that is being deleted isn't composed any more.
func (w *write) admitChanged(ctx context.Context, instance, old *unstructured.Unstructured) error {
	if old.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := w.rest.config.Nesting.Admit(instance); err != nil {
		return err
	}
	return w.admit(ctx, instance, old)
}

// admit runs preflight and, if it passes, puts finalizer, inventory and status into the object that
// is about to be stored. Nothing is written anywhere before it has passed.
func (w *write) admit(ctx context.Context, instance, old *unstructured.Unstructured) error {
	if err := registry.CheckSize(w.rest.config.Limits, budget.InstanceBytes, instance); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, w.deadlines.preflight)
	defer cancel()
	result, err := w.rest.config.Composer.Preflight(ctx, w.request(instance))
	if err != nil {
		return registry.Refused(err)
	}
	addWarnings(ctx, result.Warnings)
	before := instance.DeepCopy()
	instance.Object = result.Instance.Object
	// What krop adds is validated like what the user sent, but under krop's own rights.
	if errs := w.rest.kind.Normalize(kind.WithInternal(ctx), instance, old); len(errs) > 0 {
		return apierrors.NewInvalid(w.rest.kind.GVK().GroupKind(), instance.GetName(), errs)
	}
	registry.OwnStatus(w.rest.kind, before, instance)
	return nil
}

// carryOn applies what the stored instance says, and answers with the instance as it is afterwards.
// The instance is stored: from here on a failure is a condition and a warning, and the loop's work.
func (w *write) carryOn(ctx context.Context, stored *unstructured.Unstructured) (runtime.Object, error) {
	if w.dryRun {
		return stored, nil
	}
	applying, cancel := context.WithDeadline(ctx, w.deadlines.apply)
	defer cancel()
	result, err := w.rest.config.Composer.Apply(applying, w.announced(stored), w.rest.records)
	if w.rest.config.Composed != nil {
		w.rest.config.Composed(w.key, result, err)
	}
	if err != nil {
		return w.answerAsStored(ctx, stored, err)
	}
	addWarnings(ctx, result.Warnings)
	return result.Instance, nil
}

// answerAsStored answers when composing had to stop after the instance was stored.
func (w *write) answerAsStored(ctx context.Context, stored *unstructured.Unstructured, cause error) (runtime.Object, error) {
	if !apierrors.IsConflict(cause) { // with a conflict, somebody has written a newer intent, and composes it
		told := registry.Unavailable("what became of the children can't be recorded now", cause)
		addWarnings(ctx, []string{fmt.Sprintf("stored, but not all children could be written yet; krop goes on with it: %v", told)})
	}
	current, err := w.rest.Store.Get(ctx, w.key.Name, &metav1.GetOptions{})
	if err != nil {
		return stored, nil
	}
	return current, nil
}

func (w *write) request(instance *unstructured.Unstructured) compose.Request {
	return compose.Request{Program: w.program, Consumer: w.key.Cluster, Instance: instance, DryRun: w.dryRun}
}

// announced is the request of a stored instance: the loop follows what it reads.
func (w *write) announced(stored *unstructured.Unstructured) compose.Request {
	request := w.request(stored)
	if reads := w.rest.config.Reads; reads != nil {
		request.Reads = func(references []engine.Reference) { reads(w.key, stored.GetUID(), references) }
	}
	return request
}

func addWarnings(ctx context.Context, warnings []string) {
	for _, text := range warnings {
		warning.AddWarning(ctx, "", text)
	}
}
