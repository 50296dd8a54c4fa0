package registry

import (
	"context"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

var _ compose.Intent = &Records{}

// Records is the stored objects of one kind, instances or blueprints, as krop itself reads and writes
// them: without HTTP, without composing, by key. Every write goes under the resourceVersion of the object given, so that
// of two writers the one with the older view fails with Conflict.
type Records struct {
	export v1alpha1.ExportKey
	kind   *kind.Kind
	store  *kind.Store
	locks  *Locks
}

// NewRecords gives access to the stored objects of an export's kind.
func NewRecords(export v1alpha1.ExportKey, k *kind.Kind, store *kind.Store, locks *Locks) *Records {
	return &Records{export: export, kind: k, store: store, locks: locks}
}

// Destroy stops the caches of the store. Nothing may use it afterwards.
func (r *Records) Destroy() { r.store.Main.Destroy() }

// Get reads an instance from etcd.
func (r *Records) Get(ctx context.Context, key v1alpha1.InstanceKey) (*unstructured.Unstructured, error) {
	object, err := r.store.Main.Get(inCluster(ctx, key.Cluster, key.Namespace), key.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return AsObject(object), nil
}

// Record implements compose.Intent.
func (r *Records) Record(ctx context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	key := KeyOf(r.export, instance)
	current, err := r.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if current.GetResourceVersion() == instance.GetResourceVersion() &&
		equality.Semantic.DeepEqual(current.Object["status"], instance.Object["status"]) {
		return current, nil
	}
	owned := instance.DeepCopy()
	OwnStatus(r.kind, current, owned)
	return r.update(ctx, r.store.Status.Update, owned)
}

// Finalize takes krop's finalizer off. The instance goes with it, unless somebody else's finalizer holds it.
func (r *Records) Finalize(ctx context.Context, instance *unstructured.Unstructured) error {
	released := instance.DeepCopy()
	released.SetFinalizers(slices.DeleteFunc(released.GetFinalizers(), func(finalizer string) bool {
		return finalizer == v1alpha1.Finalizer
	}))
	_, err := r.update(ctx, r.store.Main.Update, released)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Delete asks for the instance's deletion; its finalizer holds it until its children are gone.
func (r *Records) Delete(ctx context.Context, key v1alpha1.InstanceKey) error {
	return r.delete(ctx, key, &metav1.DeleteOptions{})
}

// DeleteExactly is Delete of the instance with this UID; Conflict if there is another by now.
func (r *Records) DeleteExactly(ctx context.Context, key v1alpha1.InstanceKey, uid types.UID) error {
	return r.delete(ctx, key, metav1.NewPreconditionDeleteOptions(string(uid)))
}

func (r *Records) delete(ctx context.Context, key v1alpha1.InstanceKey, options *metav1.DeleteOptions) error {
	ctx = kind.WithInternal(inCluster(ctx, key.Cluster, key.Namespace))
	_, _, err := r.store.Main.Delete(ctx, key.Name, rest.ValidateAllObjectFunc, options)
	return err
}

// Lock excludes requests and other passes for the instance until unlock is called.
func (r *Records) Lock(ctx context.Context, key v1alpha1.InstanceKey) (unlock func(), err error) {
	return r.locks.Lock(ctx, key)
}

type updateFunc func(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error)

func (r *Records) update(ctx context.Context, update updateFunc, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	key := KeyOf(r.export, instance)
	ctx = kind.WithInternal(inCluster(ctx, key.Cluster, key.Namespace))
	object, _, err := update(ctx, key.Name, rest.DefaultUpdatedObjectInfo(instance),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return AsObject(object), nil
}

// KeyOf names a stored instance.
func KeyOf(export v1alpha1.ExportKey, instance *unstructured.Unstructured) v1alpha1.InstanceKey {
	return v1alpha1.InstanceKey{
		Export:    export,
		Cluster:   logicalcluster.From(instance),
		Namespace: instance.GetNamespace(),
		Name:      instance.GetName(),
	}
}

// KeyIn names an object in the cluster that ctx is about. It fails for the wildcard.
func KeyIn(ctx context.Context, export v1alpha1.ExportKey, name string) (v1alpha1.InstanceKey, error) {
	cluster, ok := etcd.ClusterFrom(ctx)
	if !ok || cluster == etcd.Wildcard {
		return v1alpha1.InstanceKey{}, apierrors.NewBadRequest("objects are written in one logical cluster, not across all")
	}
	return v1alpha1.InstanceKey{Export: export, Cluster: cluster, Namespace: genericapirequest.NamespaceValue(ctx), Name: name}, nil
}

func inCluster(ctx context.Context, cluster logicalcluster.Name, namespace string) context.Context {
	return genericapirequest.WithNamespace(etcd.WithCluster(ctx, cluster), namespace)
}

// AsObject is the form in which objects of served kinds are stored and handed on; nil of anything else.
func AsObject(object any) *unstructured.Unstructured {
	out, _ := object.(*unstructured.Unstructured)
	return out
}
