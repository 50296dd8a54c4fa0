// Package kind is everything about one dynamic kind: schema, defaulting, pruning, validation,
// strategies, table columns, OpenAPI and request scopes; and the stores that put them to work.
//
// It does for one CustomResourceDefinition what kube-apiserver's handler of custom resources does,
// without a CustomResourceDefinition that is stored anywhere. What upstream exports is used;
// decoding, coercing and defaulting of unstructured objects, which it doesn't, are written anew here.
//
// Two things it does differently: it serves one version, whatever version an object was stored in,
// and it keeps metadata that belongs to kcp and to krop out of users' hands (see Reserved).
package kind

import (
	"fmt"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/kube-openapi/pkg/spec3"
)

// Kind is a served kind. Immutable, safe for concurrent use.
type Kind struct {
	crd     *apiextensionsv1.CustomResourceDefinition
	version *apiextensionsv1.CustomResourceDefinitionVersion // the served one, in crd

	schema      *structural
	strategy    customResourceStrategy
	status      customResourceStrategy
	codecs      codecs
	columns     columns
	openAPI     *spec3.OpenAPI
	scope       *handlers.RequestScope
	statusScope *handlers.RequestScope
}

// New makes a kind of a definition, which it doesn't keep or change. The definition must be one that
// kube-apiserver would accept, with exactly one served version and a status subresource. What is
// wrong with it is returned as Invalid, with all causes by field.
func New(crd *apiextensionsv1.CustomResourceDefinition) (*Kind, error) {
	crd, internal, err := validated(crd)
	if err != nil {
		return nil, err
	}
	k := &Kind{crd: crd, version: servedVersion(crd)}
	steps := []func(*apiextensions.CustomResourceDefinition) error{
		k.buildSchema, k.buildStrategies, k.buildCodecs, k.buildColumns, k.buildOpenAPI, k.buildScopes,
	}
	for _, build := range steps {
		if err := build(internal); err != nil {
			return nil, fmt.Errorf("kind %s of %s: %w", crd.Spec.Names.Kind, crd.Name, err)
		}
	}
	return k, nil
}

// GVR is the group, version and plural name.
func (k *Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.crd.Spec.Group, Version: k.version.Name, Resource: k.crd.Spec.Names.Plural}
}

// GVK is the group, version and kind of one object.
func (k *Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.crd.Spec.Group, Version: k.version.Name, Kind: k.crd.Spec.Names.Kind}
}

// ListGVK is the group, version and kind of a list.
func (k *Kind) ListGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.crd.Spec.Group, Version: k.version.Name, Kind: k.crd.Spec.Names.ListKind}
}

// Names are all names, defaults filled in.
func (k *Kind) Names() apiextensionsv1.CustomResourceDefinitionNames {
	return *k.crd.Spec.Names.DeepCopy()
}

// ShortNames are the abbreviations that kubectl takes.
func (k *Kind) ShortNames() []string { return slices.Clone(k.crd.Spec.Names.ShortNames) }

// Categories are the groups of kinds, like "all", that it belongs to.
func (k *Kind) Categories() []string { return slices.Clone(k.crd.Spec.Names.Categories) }

// Namespaced says whether objects live in namespaces.
func (k *Kind) Namespaced() bool { return k.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// CRD is a copy of the definition, defaults filled in.
func (k *Kind) CRD() *apiextensionsv1.CustomResourceDefinition { return k.crd.DeepCopy() }

// OpenAPIV3 describes the kind's paths and schemas, as a cluster with the CustomResourceDefinition
// would. It is shared: not to be changed.
func (k *Kind) OpenAPIV3() *spec3.OpenAPI { return k.openAPI }

// Scope is what k8s.io/apiserver's handlers need to serve the kind. It is shared: copy the struct to
// set Authorizer, which decides whether an apply may create what isn't there. Until it is set, that
// is denied.
func (k *Kind) Scope() *handlers.RequestScope { return k.scope }

// StatusScope is Scope for the status subresource.
func (k *Kind) StatusScope() *handlers.RequestScope { return k.statusScope }

// EqualSchema says whether other serves the same: if so, stores and scopes need not be rebuilt.
func (k *Kind) EqualSchema(other *Kind) bool {
	return other != nil && k.crd.Name == other.crd.Name && apiequality.Semantic.DeepEqual(k.crd.Spec, other.crd.Spec)
}
