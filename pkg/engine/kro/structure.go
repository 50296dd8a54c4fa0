package kro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	// maxNames is how long ids and the kind may be: ids are the values of a label.
	maxNames = validation.LabelValueMaxLength
)

var (
	lowerCamel = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
	upperCamel = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*$`)
	version    = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
)

// reservedNames are words that mean something in CEL or, now or one day, in kro. kro refuses them too.
var reservedNames = sets.New(strings.Fields(`
	true false null in as break const continue else for function if import let loop package namespace return var void while
	apiVersion context dependency dependencies each externalRef externalReference externalRefs externalReferences graph
	instance item items kind kro metadata object resource resourcegraphdefinition resourceGraphDefinition resources root
	runtime schema self serviceAccountName spec status this variables vars version`)...)

// checkSize refuses what would take too long to look at closely.
func (c *compilation) checkSize() bool {
	path := field.NewPath("spec", "resources")
	return c.within(path, budget.Resources, len(c.resources)) && c.checkExpansion() && c.checkExpressions()
}

// within refuses more than is allowed.
func (c *compilation) within(path *field.Path, bound *budget.Bound, asked int) bool {
	if err := c.limits.Check(bound, asked); err != nil {
		c.refuse(field.Forbidden(path, err.Error()))
		return false
	}
	return true
}

// checkStructure looks at everything but expressions.
func (c *compilation) checkStructure() {
	c.checkSchema()
	ids := make(map[string]*resource)
	for _, r := range c.resources {
		c.checkID(r, ids)
	}
	for _, r := range c.resources {
		c.checkPolicies(r)
		c.checkForEach(r, ids)
		c.checkTemplate(r)
	}
}

func (c *compilation) checkSchema() {
	path := field.NewPath("spec", "schema")
	if c.spec.Schema == nil {
		c.refuse(field.Required(path, "defines the kind that consumers use"))
		c.spec.Schema = &v1alpha1.Schema{}
		return
	}
	s := c.spec.Schema
	if !upperCamel.MatchString(s.Kind) || len(s.Kind) > maxNames {
		c.refuse(field.Invalid(path.Child("kind"), s.Kind, fmt.Sprintf("expected PascalCase of at most %d characters, such as Database", maxNames)))
	}
	if !version.MatchString(s.APIVersion) {
		c.refuse(field.Invalid(path.Child("apiVersion"), s.APIVersion, "expected a version, such as v1alpha1"))
	}
	for _, message := range validation.IsDNS1123Subdomain(s.Group) {
		c.refuse(field.Invalid(path.Child("group"), s.Group, message))
	}
	c.enum(path.Child("scope"), string(s.Scope), string(v1alpha1.ScopeNamespaced), string(v1alpha1.ScopeCluster))
	c.fields.fields, c.fields.noFields = c.object(path.Child("spec"), s.Spec)
	c.fields.types, c.fields.noTypes = c.object(path.Child("types"), s.Types)
	c.checkFields()
	status, _ := c.object(path.Child("status"), s.Status)
	c.checkStatusNames(path.Child("status"), status)
}

// ownStatus are krop's own fields of the status, beside the conditions.
var ownStatus = []string{"composition", "state"}

// checkStatusNames refuses status fields that are krop's.
func (c *compilation) checkStatusNames(path *field.Path, status map[string]any) {
	for _, name := range ownStatus {
		if _, taken := status[name]; taken {
			c.refuse(field.Forbidden(path.Child(name), "this field is krop's own"))
		}
	}
	conditions, _ := status["conditions"].([]any)
	for i, raw := range conditions {
		text, _ := raw.(string)
		expression := asExpression(text)
		if expression == nil {
			continue
		}
		for _, name := range conditionTypes(expression.Original) {
			if reservedConditions[name] {
				c.refuse(field.Forbidden(path.Child("conditions").Index(i), fmt.Sprintf("condition type %q is krop's own", name)))
			}
		}
	}
}

func (c *compilation) enum(path *field.Path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.refuse(field.NotSupported(path, value, allowed))
	}
}

// object decodes what must be an object, or nothing.
func (c *compilation) object(path *field.Path, raw runtime.RawExtension) (object map[string]any, refused bool) {
	if isAbsent(raw) {
		return nil, false
	}
	out := map[string]any{}
	if err := yaml.UnmarshalStrict(raw.Raw, &out); err != nil {
		message := "expected an object"
		var mistyped *json.UnmarshalTypeError
		if !errors.As(err, &mistyped) {
			message += ": " + err.Error()
		}
		c.refuse(field.Invalid(path, field.OmitValueType{}, message))
		return nil, true
	}
	return out, false
}

func isAbsent(raw runtime.RawExtension) bool {
	text := bytes.TrimSpace(raw.Raw)
	return len(text) == 0 || string(text) == "null"
}

func (c *compilation) checkID(r *resource, seen map[string]*resource) {
	path := r.path.Child("id")
	switch {
	case r.ID == "":
		c.refuse(field.Required(path, "names the resource in expressions"))
		return
	case seen[r.ID] != nil:
		duplicate := field.Duplicate(path, r.ID)
		duplicate.Detail = fmt.Sprintf("%s is the first with this id", seen[r.ID].path.Child("id"))
		c.refuse(duplicate)
		return
	case reservedNames.Has(r.ID):
		c.refuse(field.Invalid(path, r.ID, "this word is reserved"))
	case !lowerCamel.MatchString(r.ID) || len(r.ID) > maxNames:
		c.refuse(field.Invalid(path, r.ID, fmt.Sprintf("expected lowerCamelCase of at most %d characters", maxNames)))
	}
	seen[r.ID] = r
}

func (c *compilation) checkPolicies(r *resource) {
	c.enum(r.path.Child("target"), string(r.Target), string(v1alpha1.TargetConsumer), string(v1alpha1.TargetProvider), string(v1alpha1.TargetHost))
	c.enum(r.path.Child("conflictPolicy"), string(r.ConflictPolicy), string(v1alpha1.ConflictFail), string(v1alpha1.ConflictAdopt))
	c.enum(r.path.Child("deletionPolicy"), string(r.DeletionPolicy), string(v1alpha1.DeletionDelete), string(v1alpha1.DeletionOrphan))
}

func (c *compilation) checkForEach(r *resource, ids map[string]*resource) {
	path := r.path.Child("forEach")
	c.within(path, budget.Dimensions, len(r.ForEach))
	seen := make(sets.Set[string])
	for i, axis := range r.ForEach {
		if len(axis) != 1 {
			c.refuse(field.Invalid(path.Index(i), field.OmitValueType{}, c.about(r, "forEach", "expected exactly one variable with its expression")))
		}
		for name := range axis {
			at := path.Index(i).Child(name)
			if seen.Has(name) {
				c.refuse(field.Duplicate(at, name))
			} else if message := misnamed(name, ids); message != "" {
				c.refuse(field.Invalid(at, name, c.about(r, "forEach", message)))
			}
			seen.Insert(name)
		}
	}
}

// misnamed says what is wrong with the name of a forEach variable.
func misnamed(name string, ids map[string]*resource) string {
	switch {
	case ids[name] != nil:
		return "a resource has this id"
	case reservedNames.Has(name):
		return "this word is reserved"
	case !lowerCamel.MatchString(name):
		return "expected lowerCamelCase"
	default:
		return ""
	}
}
