package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// mainStrategy is upstream's strategy, with reserved metadata kept and the cluster stamped.
type mainStrategy struct {
	customResourceStrategy
	kind        *Kind
	reservation reservation
}

// PrepareForCreate also drops status, as upstream does.
func (s mainStrategy) PrepareForCreate(ctx context.Context, object runtime.Object) {
	s.customResourceStrategy.PrepareForCreate(ctx, object)
	s.reservation.apply(ctx, metaOf(object), nil)
}

// PrepareForUpdate also keeps the stored status, as upstream does.
func (s mainStrategy) PrepareForUpdate(ctx context.Context, object, old runtime.Object) {
	s.customResourceStrategy.PrepareForUpdate(ctx, object, old)
	s.reservation.apply(ctx, metaOf(object), metaOf(old))
}

// Validate also refuses to create outside of one logical cluster. The store would, too, but only
// after everything that hangs on the validator has run.
func (s mainStrategy) Validate(ctx context.Context, object runtime.Object) field.ErrorList {
	problems := s.customResourceStrategy.Validate(ctx, object)
	cluster, _ := etcd.ClusterFrom(ctx)
	if err := etcd.ValidateCluster(cluster); err != nil {
		where := field.NewPath("metadata", "annotations").Key(clusterAnnotation)
		problems = append(problems, field.Invalid(where, cluster.String(), err.Error()))
	}
	return problems
}

// GetResetFields are the fields that the strategy overwrites, so that no user comes to own them.
func (s mainStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.kind.resetByMain()
}

// resetByMain are status, and the metadata that is stamped over what users send.
func (k *Kind) resetByMain() map[fieldpath.APIVersion]*fieldpath.Set {
	version := fieldpath.APIVersion(k.GVK().GroupVersion().String())
	own := fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "annotations", clusterAnnotation),
		fieldpath.MakePathOrDie("metadata", "finalizers", finalizerElement),
	)
	if status, ok := k.strategy.GetResetFields()[version]; ok {
		own = own.Union(status)
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{version: own}
}

// statusStrategy is upstream's: everything but status stays as it is stored.
type statusStrategy struct {
	customResourceStrategy
}

// PrepareForUpdate also stamps the cluster, for objects that were stored without.
func (s statusStrategy) PrepareForUpdate(ctx context.Context, object, old runtime.Object) {
	s.customResourceStrategy.PrepareForUpdate(ctx, object, old)
	stampCluster(ctx, metaOf(object))
}

func metaOf(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return &metav1.ObjectMeta{} // the store only passes what has metadata
	}
	return accessor
}
