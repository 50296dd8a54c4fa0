package kind

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// customResourceStrategy is what upstream's strategies of custom resources do; their types are
// unexported.
type customResourceStrategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy

	GetAttrs(object runtime.Object) (labels.Set, fields.Set, error)
	MatchCustomResourceDefinitionStorage(labels.Selector, fields.Selector) storage.SelectionPredicate
}

func (k *Kind) buildStrategies(internal *apiextensions.CustomResourceDefinition) error {
	root := openAPISchema(internal)
	whole, _, err := validation.NewSchemaValidator(root)
	if err != nil {
		return fmt.Errorf("making the validator: %w", err)
	}
	var statusOnly validation.SchemaValidator
	if status, ok := root.Properties["status"]; ok {
		if statusOnly, _, err = validation.NewSchemaValidator(&status); err != nil {
			return fmt.Errorf("making the validator of status: %w", err)
		}
	}
	scale := subresources(internal).Scale
	main := customresource.NewStrategy(k.typer(), k.Namespaced(), k.GVK(), whole, statusOnly,
		k.schema.schema, subresources(internal).Status, scale, k.version.SelectableFields)
	tests, err := newTextTests(k.schema.schema)
	if err != nil {
		return fmt.Errorf("reading the schema's rules: %w", err)
	}
	k.strategy = boundedStrategy{customResourceStrategy: main, tests: tests}
	k.status = customresource.NewStatusStrategy(main)
	return nil
}

func subresources(internal *apiextensions.CustomResourceDefinition) *apiextensions.CustomResourceSubresources {
	if internal.Spec.Subresources != nil {
		return internal.Spec.Subresources
	}
	return internal.Spec.Versions[0].Subresources
}

// mainStrategy is upstream's strategy, with reserved metadata kept and what kcp would stamp stamped.
type mainStrategy struct {
	customResourceStrategy
	kind        *Kind
	reservation reservation
	claims      claims
}

// PrepareForCreate also drops status, as upstream does.
func (s mainStrategy) PrepareForCreate(ctx context.Context, object runtime.Object) {
	s.customResourceStrategy.PrepareForCreate(ctx, object)
	s.reservation.apply(ctx, metaOf(object), nil)
	s.claims.stamp(ctx, metaOf(object))
}

// PrepareForUpdate also keeps the stored status, as upstream does.
func (s mainStrategy) PrepareForUpdate(ctx context.Context, object, old runtime.Object) {
	s.customResourceStrategy.PrepareForUpdate(ctx, object, old)
	s.reservation.apply(ctx, metaOf(object), metaOf(old))
	s.claims.stamp(ctx, metaOf(object))
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
	return ordered(problems)
}

// ValidateUpdate is upstream's.
func (s mainStrategy) ValidateUpdate(ctx context.Context, object, old runtime.Object) field.ErrorList {
	return ordered(s.customResourceStrategy.ValidateUpdate(ctx, object, old))
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
	claims claims
}

// PrepareForUpdate also stamps what every write does; the cluster is for objects that were stored without.
func (s statusStrategy) PrepareForUpdate(ctx context.Context, object, old runtime.Object) {
	s.customResourceStrategy.PrepareForUpdate(ctx, object, old)
	stampCluster(ctx, metaOf(object))
	s.claims.stamp(ctx, metaOf(object))
}

// metaOf is the object's metadata. The store only passes what has some. Were that to change, reserved metadata
// could be written by anybody without a word, so that is a panic: this request's failure, and no more.
func metaOf(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(fmt.Errorf("metadata of %T: %w", object, err))
	}
	return accessor
}
