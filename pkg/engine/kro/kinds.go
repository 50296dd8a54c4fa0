package kro

import (
	"errors"
	"fmt"
	"strings"

	kroschema "github.com/kubernetes-sigs/kro/pkg/graph/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// gvk is the kind that the template or externalRef names; empty if it names none.
func (r *resource) gvk() schema.GroupVersionKind {
	apiVersion, _ := r.object["apiVersion"].(string)
	kind, _ := r.object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" || kind == "" || strings.Contains(kind, "${") {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(kind)
}

// resolveKinds asks the planes for the kinds of all resources.
func (c *compilation) resolveKinds() {
	for _, r := range c.resources {
		if gvk := r.gvk(); !gvk.Empty() && r.onKnownPlane() {
			c.resolveKind(r, gvk)
		}
		if r.kind != nil {
			c.checkNamespace(r)
		}
	}
}

func (r *resource) onKnownPlane() bool {
	return r.Target == v1alpha1.TargetConsumer || r.Target == v1alpha1.TargetProvider || r.Target == v1alpha1.TargetHost
}

func (c *compilation) resolveKind(r *resource, gvk schema.GroupVersionKind) {
	kind, err := c.schemas.Resolve(r.Target, gvk)
	path := r.body().Child("kind")
	var missing *NoPlaneError
	var over *budget.Over
	switch {
	case errors.As(err, &over):
		c.refuse(field.Invalid(path, gvk.Kind, c.about(r, "", over.Error())))
	case errors.As(err, &missing):
		c.refuse(field.Invalid(r.path.Child("target"), r.Target, c.about(r, "", missing.Error())))
	case asNotFound(err) != nil:
		c.refuse(field.Invalid(path, gvk.Kind, c.about(r, "", err.Error())))
	case err != nil:
		c.refuse(field.InternalError(path, fmt.Errorf("resource %q: finding %s on the %s plane: %w", r.ID, gvk, r.Target, err)))
	default:
		if kind.Schema == nil {
			kind.Schema = anyObject()
		}
		r.kind = &kind
	}
}

// anyObject is the schema of a kind whose plane publishes none.
func anyObject() *spec.Schema {
	return &spec.Schema{
		SchemaProps: spec.SchemaProps{
			Type: []string{"object"},
			Properties: map[string]spec.Schema{
				"apiVersion": *spec.StringProperty(),
				"kind":       *spec.StringProperty(),
				"metadata":   kroschema.ObjectMetaSchema,
			},
		},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}
}

// checkNamespace makes sure that it is known where an object is. Only a consumer's plane has the
// instance's namespace. A selector without one reads all namespaces.
func (c *compilation) checkNamespace(r *resource) {
	meta, _ := r.object["metadata"].(map[string]any)
	namespace, set := meta["namespace"]
	path := r.body().Child("metadata", "namespace")
	switch {
	case !r.kind.Namespaced && set:
		c.refuse(field.Forbidden(path, c.about(r, "", fmt.Sprintf("%s is cluster-scoped", r.gvk().Kind))))
	case !r.kind.Namespaced || r.selects() || namespace != nil && namespace != "":
	case r.Target != v1alpha1.TargetConsumer:
		c.refuse(field.Required(path, c.about(r, "", fmt.Sprintf("the %s plane doesn't have the instance's namespace", r.Target))))
	case c.spec.Schema.Scope == v1alpha1.ScopeCluster:
		c.refuse(field.Required(path, c.about(r, "", "instances are cluster-scoped and have no namespace to inherit")))
	}
}
