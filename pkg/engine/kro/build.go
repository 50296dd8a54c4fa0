package kro

import (
	"fmt"

	krov1alpha1 "github.com/kubernetes-sigs/kro/api/v1alpha1"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/budget"
)

// build compiles the blueprint with kro. A panic of kro's is an error of the blueprint.
func (c *compilation) build() (compiled *graph.Graph, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			compiled, err = nil, fmt.Errorf("kro's compiler can't cope with it: %v", cause)
		}
	}()
	kinds := &kindsInOrder{resources: c.resources}
	builder, err := graph.NewBuilder(nil, nil, graph.WithSchemaResolver(kinds), graph.WithRESTMapper(kinds))
	if err != nil {
		return nil, err
	}
	return builder.NewResourceGraphDefinition(c.blueprint(), graph.Config{
		MaxCollectionSize:          c.limits.Of(budget.ForEachItems),
		MaxCollectionDimensionSize: c.limits.Of(budget.Dimensions),
	})
}

// blueprint is what kro compiles: the blueprint without krop's fields.
func (c *compilation) blueprint() *krov1alpha1.ResourceGraphDefinition {
	from := c.spec.Schema
	out := &krov1alpha1.ResourceGraphDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: krov1alpha1.ResourceGraphDefinitionSpec{
			Schema: &krov1alpha1.Schema{
				Kind:                     from.Kind,
				APIVersion:               from.APIVersion,
				Group:                    from.Group,
				Scope:                    krov1alpha1.ResourceScope(from.Scope),
				Spec:                     from.Spec,
				Types:                    from.Types,
				Status:                   from.Status,
				AdditionalPrinterColumns: from.AdditionalPrinterColumns,
				ShortNames:               from.ShortNames,
				Categories:               from.Categories,
			},
		},
	}
	if from.Metadata != nil {
		out.Spec.Schema.Metadata = &krov1alpha1.CRDMetadata{Labels: from.Metadata.Labels, Annotations: from.Metadata.Annotations}
	}
	for _, r := range c.resources {
		out.Spec.Resources = append(out.Spec.Resources, r.forKro())
	}
	return out
}

func (r *resource) forKro() *krov1alpha1.Resource {
	out := &krov1alpha1.Resource{ID: r.ID, Template: r.Template, ReadyWhen: r.ReadyWhen, IncludeWhen: r.IncludeWhen}
	if r.selects() {
		out.ReadyWhen = nil // see compileReadyWhen
	}
	if ref := r.ExternalRef; ref != nil {
		out.ExternalRef = &krov1alpha1.ExternalRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Metadata: krov1alpha1.ExternalRefMetadata{
			Name: ref.Metadata.Name, Namespace: ref.Metadata.Namespace, Selector: ref.Metadata.Selector,
		}}
	}
	for _, axis := range r.ForEach {
		out.ForEach = append(out.ForEach, krov1alpha1.ForEachDimension(axis))
	}
	return out
}

// kindsInOrder tells kro's builder about kinds. It asks by kind alone, while one kind can differ from
// plane to plane; but it asks once for each resource, in their order: first for the schema, then for
// the mapping. TestKindsThatDifferBetweenPlanes pins that order, and a builder that asks for anything
// else gets an error.
type kindsInOrder struct {
	meta.RESTMapper
	resources []*resource
	next      int
}

func (k *kindsInOrder) current(gk schema.GroupKind) (*Kind, error) {
	if k.next >= len(k.resources) || k.resources[k.next].kind == nil {
		return nil, fmt.Errorf("kind %s was asked for out of order", gk)
	}
	r := k.resources[k.next]
	if r.gvk().GroupKind() != gk {
		return nil, fmt.Errorf("kind %s was asked for instead of %s", gk, r.gvk().GroupKind())
	}
	return r.kind, nil
}

// ResolveSchema implements resolver.SchemaResolver.
func (k *kindsInOrder) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	kind, err := k.current(gvk.GroupKind())
	if err != nil {
		return nil, err
	}
	return kind.Schema, nil
}

// RESTMapping implements meta.RESTMapper, as far as kro uses it.
func (k *kindsInOrder) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	kind, err := k.current(gk)
	if err != nil {
		return nil, err
	}
	mapping := &meta.RESTMapping{Resource: kind.GVR, GroupVersionKind: k.resources[k.next].gvk(), Scope: meta.RESTScopeRoot}
	if kind.Namespaced {
		mapping.Scope = meta.RESTScopeNamespace
	}
	k.next++
	return mapping, nil
}
