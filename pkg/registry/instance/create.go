package instance

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"

	"go.opendefense.cloud/krop/pkg/registry"
)

// maxNameAttempts bounds how often a generated name that is taken is replaced by another. Upstream
// tries as often.
const maxNameAttempts = 8

// Create validates, composes and stores a new instance. When it answers without an error, every
// child that could be written is in place.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	instance := registry.AsObject(object)
	if instance.GetName() != "" || instance.GetGenerateName() == "" {
		return r.create(ctx, instance, validate, options)
	}
	// The generic store tries other names on copies of the object, which composing could not reach.
	var created runtime.Object
	err := error(nil)
	for range maxNameAttempts {
		attempt := instance.DeepCopy()
		attempt.SetName(names.SimpleNameGenerator.GenerateName(instance.GetGenerateName()))
		if created, err = r.create(ctx, attempt, validate, options); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return created, err
}

func (r *REST) create(ctx context.Context, instance *unstructured.Unstructured, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	work, err := r.begin(ctx, instance.GetName(), dryrun.IsDryRun(options.DryRun))
	if err != nil {
		return nil, err
	}
	defer work.end()

	// Known before anything is composed: a create that is bound to fail must not dry-run children.
	if err := r.refuseExisting(ctx, instance.GetName()); err != nil {
		return nil, err
	}
	composing := registry.AdmitCreate(validate, func(ctx context.Context) error { return work.admitNew(ctx, instance) })
	stored, err := r.Store.Create(ctx, instance, composing, options)
	if err != nil {
		return nil, err
	}
	return work.carryOn(ctx, registry.AsObject(stored))
}

// refuseExisting fails with AlreadyExists if there is an instance of that name, as far as the watch
// cache knows; storing finds out for certain.
func (r *REST) refuseExisting(ctx context.Context, name string) error {
	if name == "" {
		return nil // validation says what is wrong
	}
	_, err := r.Store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if err == nil { // or it was, a moment ago
		_, err = r.Store.Get(ctx, name, &metav1.GetOptions{})
	}
	switch {
	case err == nil:
		return apierrors.NewAlreadyExists(r.DefaultQualifiedResource, name)
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}
