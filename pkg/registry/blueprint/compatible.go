package blueprint

import (
	"context"
	"fmt"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine/compat"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Consumers knows who uses an export. *publish.Bindings is one.
type Consumers interface {
	// Holders are the workspaces that have a binding to the export. known is false if they are not certainly all.
	Holders(ctx context.Context, export v1alpha1.ExportKey) (holders sets.Set[logicalcluster.Name], known bool)
}

// checkCompatible refuses an edit of old (nil if there is none) that breaks what consumers have: stored instances that
// it would make invalid or take fields from, and clients that write or read them. While nobody has bound the export there is neither, so an author
// is free to try things out; from the first binding on somebody relies on the schema, whether or not an instance is
// stored at the moment. kro refuses always, and allows the same edits by the same annotation.
func (w *write) checkCompatible(ctx context.Context, old, object *unstructured.Unstructured, edited map[string]*apiextensionsv1.JSONSchemaProps) error {
	if old == nil {
		return nil
	}
	before, err := decode(old)
	if err != nil || before.Spec.Schema == nil {
		return nil // what can't be read can't be compared
	}
	if equality.Semantic.DeepEqual(old.Object["spec"], object.Object["spec"]) {
		return nil // types of status may differ all the same, since kinds have changed: that is no edit
	}
	breaks := breaksOf(w.rest.publishedFields(before), edited)
	if len(breaks) == 0 {
		return nil
	}
	use, err := w.rest.offering.use(ctx, before)
	if err != nil || use == "" {
		return err
	}
	if object.GetAnnotations()[v1alpha1.AnnotationAllowBreaking] == "true" {
		warning.AddWarning(ctx, "", allowed(breaks, use))
		return nil
	}
	return invalid(before.Name, append(breaks, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationAllowBreaking),
		fmt.Sprintf("the edit breaks what consumers have (%s): leave these fields as they are and add others, or set this annotation to %q", use, "true"))))
}

// breaksOf are the breaking changes of the kind, by the field of the blueprint that they are in.
func breaksOf(was, is map[string]*apiextensionsv1.JSONSchemaProps) field.ErrorList {
	var breaks field.ErrorList
	for _, part := range []string{"spec", "status"} {
		if was[part] != nil && is[part] != nil {
			breaks = append(breaks, compat.Breaking(was[part], is[part], field.NewPath("spec", "schema", part))...)
		}
	}
	return breaks
}

// publishedFields is what consumers know of the kind by now. Of a blueprint that isn't served, since it doesn't compile any
// more, that is what its author has written.
func (r *REST) publishedFields(before *v1alpha1.ResourceGraphDefinition) map[string]*apiextensionsv1.JSONSchemaProps {
	if served, ok := r.offering.Catalog.Lookup(exportKey(before)); ok && served.Blueprint() == before.Name {
		return fieldsOf(served.Program.CRD)
	}
	return r.writtenFields(before)
}

// writtenFields are those that the author has written, without status: what that is made of are kinds.
func (r *REST) writtenFields(blueprint *v1alpha1.ResourceGraphDefinition) map[string]*apiextensionsv1.JSONSchemaProps {
	return map[string]*apiextensionsv1.JSONSchemaProps{"spec": kro.SpecSchema(blueprint, r.compiler.Limits)}
}

// fieldsOf are the author's fields of a kind: its spec, and its status without what all kinds have.
func fieldsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]*apiextensionsv1.JSONSchemaProps {
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	fields := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, part := range []string{"spec", "status"} {
		if schema, ok := root.Properties[part]; ok {
			fields[part] = schema.DeepCopy()
		}
	}
	if status := fields["status"]; status != nil {
		for _, own := range kro.OwnStatusFields() {
			delete(status.Properties, own)
		}
	}
	return fields
}

// maxWarned is how many changes a warning names: kubectl prints it on every apply.
const maxWarned = 10

func allowed(breaks field.ErrorList, use string) string {
	var changes []string
	for _, change := range breaks[:min(len(breaks), maxWarned)] {
		changes = append(changes, change.Field+": "+change.Detail)
	}
	if more := len(breaks) - maxWarned; more > 0 {
		changes = append(changes, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("the edit breaks what consumers have (%s), as the annotation %s allows: %s",
		use, v1alpha1.AnnotationAllowBreaking, strings.Join(changes, "; "))
}

// use says who relies on a stored blueprint's kind; empty if nobody does. Whoever can't be asked, does.
func (o *Offering) use(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) (string, error) {
	count, err := o.Instances(ctx, blueprint)
	if err != nil {
		return "", registry.Unavailable("the instances of the blueprint can't be counted", err)
	}
	holders, known := o.Consumers.Holders(ctx, exportKey(blueprint))
	switch {
	case count == 0 && known && len(holders) == 0:
		return "", nil
	case !known:
		return fmt.Sprintf("%d instances; who has bound it can't be found out now", count), nil
	default:
		return fmt.Sprintf("%d instances, %d workspaces have bound it", count, len(holders)), nil
	}
}
