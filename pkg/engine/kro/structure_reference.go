package kro

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// selects says whether the resource reads a list of objects.
func (r *resource) selects() bool {
	return r.ExternalRef != nil && !isAbsent(r.ExternalRef.Metadata.Selector)
}

// isList says whether other resources see a list of objects in it.
func (r *resource) isList() bool { return r.selects() || len(r.ForEach) > 0 }

// body is where it says which object is meant.
func (r *resource) body() *field.Path {
	if r.ExternalRef != nil {
		return r.path.Child("externalRef")
	}
	return r.path.Child("template")
}

// checkReference looks at an externalRef, and makes an object of it as kro does.
func (c *compilation) checkReference(r *resource) {
	path := r.path.Child("externalRef", "metadata")
	from := r.ExternalRef.Metadata
	if len(r.ForEach) > 0 {
		c.refuse(field.Forbidden(r.path.Child("forEach"), c.about(r, "", "an externalRef can't have it: a selector reads several objects")))
	}
	if r.ConflictPolicy == v1alpha1.ConflictAdopt {
		c.refuse(field.Forbidden(r.path.Child("conflictPolicy"), c.about(r, "", "an externalRef is only read")))
	}
	if r.DeletionPolicy == v1alpha1.DeletionOrphan {
		c.refuse(field.Forbidden(r.path.Child("deletionPolicy"), c.about(r, "", "an externalRef is only read")))
	}
	metadata := map[string]any{}
	named := strings.TrimSpace(from.Name) != ""
	switch {
	case named && r.selects():
		c.refuse(field.Invalid(path, field.OmitValueType{}, c.about(r, "", "expected exactly one of name and selector, found both")))
	case named:
		metadata["name"] = from.Name
	case r.selects():
		metadata["selector"] = c.selector(r, path.Child("selector"))
	default:
		c.refuse(field.Required(path, c.about(r, "", "expected exactly one of name and selector, found none")))
	}
	if from.Namespace != "" {
		metadata["namespace"] = from.Namespace
	}
	r.object = map[string]any{"apiVersion": r.ExternalRef.APIVersion, "kind": r.ExternalRef.Kind, "metadata": metadata}
	c.checkKind(r)
}

// selector is the selector as it is written: a label selector, in which strings may have expressions, or
// one expression that gives it.
func (c *compilation) selector(r *resource, path *field.Path) any {
	var value any
	if err := json.Unmarshal(r.ExternalRef.Metadata.Selector.Raw, &value); err != nil {
		c.refuse(field.Invalid(path, field.OmitValueType{}, c.about(r, "", err.Error())))
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		s := selectorCheck{compilation: c, resource: r}
		s.fields(path, v)
	case string:
		if asExpression(v) == nil {
			c.refuse(field.Invalid(path, v, c.about(r, "", "expected a label selector, or one expression in ${} that gives one")))
		}
	default:
		c.refuse(field.TypeInvalid(path, summary(v), c.about(r, "", "expected a label selector, or one expression in ${} that gives one")))
	}
	return value
}

// selectorCheck looks at a label selector. Every part that has no expression in it has to be right as it is.
type selectorCheck struct {
	*compilation
	resource *resource
}

func (s selectorCheck) refuseAll(errs field.ErrorList) {
	for _, err := range errs {
		err.Detail = s.about(s.resource, "", err.Detail)
		s.refuse(err)
	}
}

func (s selectorCheck) mistyped(path *field.Path, value any, expected string) {
	s.refuse(field.TypeInvalid(path, summary(value), s.about(s.resource, "", "expected "+expected)))
}

func (s selectorCheck) unknown(path *field.Path, expected ...string) {
	s.refuse(field.Invalid(path, field.OmitValueType{}, s.about(s.resource, "", "a label selector has no such field, expected "+oneOfNames(expected))))
}

func (s selectorCheck) fields(path *field.Path, selector map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(selector)) {
		at, value := child(path, name), selector[name]
		switch {
		case name != "matchLabels" && name != "matchExpressions":
			s.unknown(at, "matchExpressions", "matchLabels")
		case value == nil || isWholeExpression(value):
		case name == "matchLabels":
			s.labels(at, value)
		default:
			s.requirements(at, value)
		}
	}
}

func isWholeExpression(value any) bool {
	text, ok := value.(string)
	return ok && asExpression(text) != nil
}

func (s selectorCheck) labels(path *field.Path, value any) {
	labels, ok := value.(map[string]any)
	if !ok {
		s.mistyped(path, value, "an object of strings")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		s.refuseAll(metav1validation.ValidateLabelName(key, path))
		text, ok := labels[key].(string)
		switch {
		case !ok:
			s.mistyped(path.Key(key), labels[key], "string")
		case !strings.Contains(text, "${"):
			s.refuseAll(invalidLabelValue(path.Key(key), text))
		}
	}
}

// invalidLabelValue is what is wrong with a label's value as such.
func invalidLabelValue(path *field.Path, text string) field.ErrorList {
	requirement := metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: []string{text}}
	errs := metav1validation.ValidateLabelSelectorRequirement(requirement, metav1validation.LabelSelectorValidationOptions{}, path)
	for _, err := range errs {
		err.Field = path.String()
	}
	return errs
}

func (s selectorCheck) requirements(path *field.Path, value any) {
	list, ok := value.([]any)
	if !ok {
		s.mistyped(path, value, "a list of objects with key, operator and values")
		return
	}
	for i, element := range list {
		if requirement, ok := element.(map[string]any); ok {
			s.requirement(path.Index(i), requirement)
		} else if !isWholeExpression(element) {
			s.mistyped(path.Index(i), element, "an object with key, operator and values")
		}
	}
}

func (s selectorCheck) requirement(path *field.Path, from map[string]any) {
	before := len(s.errs)
	literal := true
	for _, name := range slices.Sorted(maps.Keys(from)) {
		at, value := child(path, name), from[name]
		text, isText := value.(string)
		switch {
		case name != "key" && name != "operator" && name != "values":
			s.unknown(at, "key", "operator", "values")
		case isText && strings.Contains(text, "${"):
			literal = false
		case name == "values":
			literal = s.values(at, value) && literal
		case !isText:
			s.mistyped(at, value, "string")
		}
	}
	if !literal || len(s.errs) > before {
		return
	}
	requirement := metav1.LabelSelectorRequirement{}
	if raw, err := json.Marshal(from); err == nil && json.Unmarshal(raw, &requirement) == nil {
		s.refuseAll(metav1validation.ValidateLabelSelectorRequirement(requirement, metav1validation.LabelSelectorValidationOptions{}, path))
	}
}

// values says whether none of them has an expression in it.
func (s selectorCheck) values(path *field.Path, value any) bool {
	list, ok := value.([]any)
	if !ok {
		s.mistyped(path, value, "a list of strings")
		return false
	}
	literal := true
	for i, element := range list {
		text, ok := element.(string)
		if !ok {
			s.mistyped(path.Index(i), element, "string")
		}
		literal = literal && ok && !strings.Contains(text, "${")
	}
	return literal
}
