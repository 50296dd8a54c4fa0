package kro

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/graph/variable"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// place is a field of a template.
type place struct {
	path *field.Path
	// typeName is what kro calls the type of the field.
	typeName string
	// schema of the field, nil where there is none.
	schema *spec.Schema
}

// foundExpression is an expression in a template, and where it goes.
type foundExpression struct {
	place
	expression *krocel.Expression
}

// walk looks at a template field by field.
type walk struct {
	*diagnosis
	resource *resource
	found    []foundExpression
}

// templateExpressions are the expressions in the resource's template. Whatever contradicts the kind's
// schema is refused on the way.
func (d *diagnosis) templateExpressions(r *resource) []foundExpression {
	w := &walk{diagnosis: d, resource: r}
	root := place{path: r.body(), typeName: krocel.TypeNamePrefix + r.ID}
	if r.kind != nil && r.ExternalRef == nil && !r.isCRD() {
		root.schema = r.kind.Schema
	}
	w.value(r.object, root)
	if r.ExternalRef == nil && r.isCRD() {
		w.onlyInMetadata()
	}
	return w.found
}

// isCRD says whether the template is a CustomResourceDefinition, which kro reads without schema.
func (r *resource) isCRD() bool {
	return r.gvk().Group == "apiextensions.k8s.io" && r.gvk().Kind == "CustomResourceDefinition"
}

func (w *walk) onlyInMetadata() {
	prefix := w.resource.path.Child("template", "metadata").String()
	for _, found := range w.found {
		if !strings.HasPrefix(found.path.String(), prefix) {
			w.refuse(field.Invalid(found.path, shown(found.expression), w.about(w.resource, "", "a CustomResourceDefinition can have expressions only in its metadata")))
		}
	}
}

func (w *walk) value(value any, at place) {
	switch v := value.(type) {
	case map[string]any:
		if at.schema == nil || at.describesFields() {
			w.fields(v, at)
			return
		}
	case []any:
		if at.schema == nil || at.describesElements() {
			w.elements(v, at)
			return
		}
	}
	w.leaf(value, at)
}

func (at place) preservesUnknown() bool {
	preserve, _ := at.schema.Extensions["x-kubernetes-preserve-unknown-fields"].(bool)
	return preserve
}

func (at place) describesFields() bool {
	return !at.preservesUnknown() && (at.schema.Type.Contains("object") || len(at.schema.Properties) > 0)
}

func (at place) describesElements() bool {
	return !at.preservesUnknown() && at.schema.Type.Contains("array") && at.schema.Items != nil && at.schema.Items.Schema != nil
}

func (w *walk) fields(object map[string]any, at place) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		below := place{path: child(at.path, name), typeName: at.typeName + "." + name}
		if at.schema != nil {
			if below.schema = w.lookup(at.schema, name); below.schema == nil {
				w.refuse(field.Invalid(below.path, field.OmitValueType{}, w.about(w.resource, "",
					fmt.Sprintf("%s has no such field, expected %s", w.resource.gvk().Kind, oneOf(at.schema, name)))))
				continue
			}
		}
		w.value(object[name], below)
	}
}

func (w *walk) lookup(schema *spec.Schema, name string) *spec.Schema {
	if found := w.lookups.LookupField(schema, name); found != nil {
		return found
	}
	return w.lookups.LookupAdditionalProperties(schema)
}

// maxSuggestions keeps a message readable.
const maxSuggestions = 12

// oneOf are the fields that there are, in place of one that there isn't. If they are too many, those that begin
// like it come first.
func oneOf(schema *spec.Schema, wrong string) string {
	names := slices.Sorted(maps.Keys(schema.Properties))
	if len(names) > maxSuggestions {
		slices.SortStableFunc(names, func(a, b string) int {
			return cmp.Compare(alike(b, wrong), alike(a, wrong))
		})
	}
	return oneOfNames(names)
}

// alike is how many characters two names begin with alike.
func alike(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func oneOfNames(names []string) string {
	switch {
	case len(names) == 0:
		return "none here"
	case len(names) > maxSuggestions:
		return "one of " + strings.Join(names[:maxSuggestions], ", ") + ", …"
	default:
		return "one of " + strings.Join(names, ", ")
	}
}

func (w *walk) elements(list []any, at place) {
	for i, element := range list {
		below := place{path: at.path.Index(i), typeName: at.typeName + ".@idx"}
		if at.schema != nil {
			below.schema = at.schema.Items.Schema
		}
		w.value(element, below)
	}
}

// leaf has kro's parser look at one field, as the only one of an object.
func (w *walk) leaf(value any, at place) {
	const only = "v"
	schema := at.schema
	if schema == nil {
		schema = &spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}}}
	}
	root := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{only: *schema}}}
	descriptors, err := w.parser.ParseResource(map[string]any{only: value}, root)
	if err != nil {
		w.refuse(field.Invalid(at.path, summary(value), w.about(w.resource, "", readable(err))))
		return
	}
	slices.SortFunc(descriptors, func(a, b variable.FieldDescriptor) int { return strings.Compare(a.Path, b.Path) })
	for _, descriptor := range descriptors {
		found := foundExpression{place: at, expression: descriptor.Expression}
		if inside := strings.TrimPrefix(descriptor.Path, only); inside != "" {
			// The fields of what preserves unknown fields have no types.
			found.place = place{path: below(at.path, strings.TrimPrefix(inside, ".")), typeName: at.typeName}
		}
		w.found = append(w.found, found)
	}
}

// summary is a bad value as far as it is worth showing.
func summary(value any) any {
	switch value.(type) {
	case map[string]any, []any:
		return field.OmitValueType{}
	default:
		return value
	}
}

var mistyped = regexp.MustCompile(`expected (.+) type for path .*, got (.+)$`)

// readable is an error of kro's parser in terms of expected and found.
func readable(err error) string {
	match := mistyped.FindStringSubmatch(err.Error())
	if match == nil {
		return err.Error()
	}
	found := match[2]
	if found == "float64" {
		found = "number"
	}
	return fmt.Sprintf("expected %s, found %s", match[1], found)
}

// decoded is what kro would read; nil if it is absent or can't be read.
func decoded(raw runtime.RawExtension) map[string]any {
	if isAbsent(raw) {
		return map[string]any{}
	}
	out := map[string]any{}
	if err := yaml.UnmarshalStrict(raw.Raw, &out); err != nil {
		return map[string]any{}
	}
	return out
}
