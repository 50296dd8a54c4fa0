package kind

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"go.opendefense.cloud/krop/pkg/budget"
)

func (k *Kind) buildScopes(*apiextensions.CustomResourceDefinition) error {
	types, err := k.typeConverter()
	if err != nil {
		return err
	}
	scope := k.baseScope()
	if scope.FieldManager, err = k.fieldManager(types, "", k.resetByMain()); err != nil {
		return err
	}
	status := k.baseScope()
	status.Subresource = "status"
	if status.FieldManager, err = k.fieldManager(types, "status", k.status.GetResetFields()); err != nil {
		return err
	}
	k.scope, k.statusScope = scope, status
	return nil
}

func (k *Kind) baseScope() *handlers.RequestScope {
	return &handlers.RequestScope{
		Namer: handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !k.Namespaced()},

		Serializer:          k.codecs.negotiated,
		ParameterCodec:      k.codecs.parameterCodec,
		StandardSerializers: k.codecs.negotiated.objectMediaTypes(),
		Creater:             k.codecs.creater,
		Convertor:           k.codecs.safe,
		Defaulter:           k.schema,
		Typer:               k.codecs.typer,
		UnsafeConvertor:     k.codecs.unsafe,
		Authorizer:          authorizer.AuthorizerFunc(denyCreateOnApply),

		EquivalentResourceMapper: k.equivalents(),
		TableConvertor:           k.columns,

		Resource:         k.GVR(),
		Kind:             k.GVK(),
		HubGroupVersion:  k.GVK().GroupVersion(),
		MetaGroupVersion: metav1.SchemeGroupVersion,

		MaxRequestBodyBytes: int64(budget.RequestBytes.Default),
	}
}

// denyCreateOnApply stands in until the server sets its own authorizer: kcp authorizes the verb patch,
// and an apply that creates needs create as well.
func denyCreateOnApply(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "no authorizer is set to decide whether an apply may create", nil
}

func (k *Kind) equivalents() runtime.EquivalentResourceMapper {
	registry := runtime.NewEquivalentResourceRegistry()
	registry.RegisterKindFor(k.GVR(), "", k.GVK())
	registry.RegisterKindFor(k.GVR(), "status", k.GVK())
	return registry
}

func (k *Kind) fieldManager(types managedfields.TypeConverter, subresource string, reset map[fieldpath.APIVersion]*fieldpath.Set) (*managedfields.FieldManager, error) {
	manager, err := managedfields.NewDefaultCRDFieldManager(types, k.codecs.safe, k.schema, k.codecs.creater,
		k.GVK(), k.GVK().GroupVersion(), subresource, unownedOf(reset))
	if err != nil {
		return nil, fmt.Errorf("making the field manager: %w", err)
	}
	return manager, nil
}
