package kro

import (
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/metadata"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func (c *compilation) checkTemplate(r *resource) {
	path := r.path.Child("template")
	hasTemplate := !isAbsent(r.Template)
	switch {
	case r.ExternalRef != nil && hasTemplate:
		c.refuse(field.Invalid(r.path, field.OmitValueType{}, c.about(r, "", "expected exactly one of template and externalRef, found both")))
		return
	case r.ExternalRef != nil:
		c.checkReference(r)
		return
	case !hasTemplate:
		c.refuse(field.Required(path, c.about(r, "", "expected exactly one of template and externalRef, found none")))
		return
	}
	if r.object, _ = c.object(path, r.Template); r.object == nil {
		return
	}
	c.checkKind(r)
	c.checkMetadata(r, path.Child("metadata"))
}

func (c *compilation) checkKind(r *resource) {
	path := r.body()
	if gv := c.literal(r, "apiVersion"); gv != "" {
		if _, err := schema.ParseGroupVersion(gv); err != nil {
			c.refuse(field.Invalid(path.Child("apiVersion"), gv, c.about(r, "", "expected group/version")))
		}
	}
	if kind := c.literal(r, "kind"); kind != "" && !upperCamel.MatchString(kind) {
		c.refuse(field.Invalid(path.Child("kind"), kind, c.about(r, "", "expected PascalCase")))
	}
}

// literal is a text in the template or externalRef that the compiler has to know, empty if it has errors.
func (c *compilation) literal(r *resource, name string) string {
	path, value := r.body().Child(name), r.object[name]
	text, ok := value.(string)
	switch {
	case value == nil || text == "" && ok:
		c.refuse(field.Required(path, c.about(r, "", "expected a literal")))
	case !ok:
		c.refuse(field.TypeInvalid(path, summary(value), c.about(r, "", "expected string")))
	case strings.Contains(text, "${"):
		c.refuse(field.Invalid(path, text, c.about(r, "", "expected a literal, found an expression")))
		return ""
	}
	return text
}

// ownedPrefixes start labels and annotations that templates can't set: krop's and kro's own, and those by
// which kcp knows where an object is and who may see it.
var ownedPrefixes = []string{
	v1alpha1.Prefix, metadata.KROPrefix, metadata.InternalKROPrefix, v1alpha1.AnnotationCluster, "claimed.internal.apis.kcp.io/",
}

// serverFields are metadata that API servers set, or that krop has to: with one of them in a template, the
// real write would fail although the dry-run had passed, or be undone and repeated for ever.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generateName", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

func (c *compilation) checkMetadata(r *resource, path *field.Path) {
	meta, _ := r.object["metadata"].(map[string]any)
	if name, ok := meta["name"].(string); !ok || name == "" {
		c.refuse(field.Required(path.Child("name"), c.about(r, "", "children are found by their names")))
	}
	for _, name := range serverFields {
		if _, found := meta[name]; found {
			c.refuse(field.Forbidden(path.Child(name), c.about(r, "", "templates can't set it: the API server or krop does")))
		}
	}
	for _, kind := range []string{"labels", "annotations"} {
		marks, _ := meta[kind].(map[string]any)
		for key := range marks {
			if prefix := ownedPrefix(key); prefix != "" {
				c.refuse(field.Forbidden(path.Child(kind).Key(key), c.about(r, "", "the prefix "+prefix+" is reserved")))
			}
		}
	}
}

func ownedPrefix(key string) string {
	for _, prefix := range ownedPrefixes {
		if strings.HasPrefix(key, prefix) {
			return prefix
		}
	}
	return ""
}
