package kro

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/simpleschema"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// simpleSchema is the author's spec and types, field by field.
type simpleSchema struct {
	// fields and types as they are written.
	fields, types map[string]any
	// soundFields and soundTypes are without errors: notUnderstood stands for what has some.
	soundFields, soundTypes map[string]any
	// noFields and noTypes are set where there is no object to read them from.
	noFields, noTypes bool
}

const (
	// notUnderstoodMark is the description of fields that notUnderstood stands for.
	notUnderstoodMark = "not understood"
	// notUnderstood is a field whose type isn't known, since it has errors. Expressions can do
	// anything with it, so that they are checked for other errors.
	notUnderstood = `object | description="` + notUnderstoodMark + `"`
)

// checkFields looks at all types and fields, each by itself.
func (c *compilation) checkFields() {
	s := &c.fields
	s.soundTypes = make(map[string]any, len(s.types))
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		c.checkType(name, nil)
	}
	path := field.NewPath("spec", "schema", "spec")
	s.soundFields, _ = c.soundTree(path, s.fields).(map[string]any)
}

// checkType looks at a type after those that it is made of. trail are those that are being looked at.
func (c *compilation) checkType(name string, trail []string) {
	s := &c.fields
	path := child(field.NewPath("spec", "schema", "types"), name)
	if start := slices.Index(trail, name); start >= 0 {
		circle := append(slices.Clone(trail[start:]), name)
		c.refuse(field.Invalid(path, field.OmitValueType{}, "types are made of each other in a circle: "+strings.Join(circle, " -> ")))
		s.soundTypes[name] = notUnderstood
		return
	}
	if s.soundTypes[name] != nil {
		return
	}
	for _, other := range typesIn(s.types[name]) {
		if _, known := s.types[other]; known {
			c.checkType(other, append(trail, name))
		}
	}
	if sound := c.soundTree(path, s.types[name]); s.soundTypes[name] == nil {
		s.soundTypes[name] = sound
	}
}

// typesIn are the author's types that a field, or the fields of an object, are made of.
func typesIn(tree any) []string {
	names := make(map[string]bool)
	collectTypes(tree, names)
	return slices.Sorted(maps.Keys(names))
}

func collectTypes(tree any, names map[string]bool) {
	switch v := tree.(type) {
	case string:
		if parsed, err := simpleschema.ParseTypeString(v); err == nil {
			for _, name := range parsed.Deps() {
				names[name] = true
			}
		}
	case map[string]any:
		for _, below := range v {
			collectTypes(below, names)
		}
	}
}

// soundTree reports what is wrong with a field, or with the fields of an object, and leaves it out.
func (c *compilation) soundTree(path *field.Path, tree any) any {
	switch v := tree.(type) {
	case string:
		if !c.checkField(path, v) {
			return notUnderstood
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out[name] = c.soundTree(child(path, name), v[name])
		}
		return out
	default:
		c.refuse(field.Invalid(path, summary(v), "expected a type, such as string, or an object with fields"))
		return notUnderstood
	}
}

// checkField reports what is wrong with one field: with its type, and with each of its markers.
func (c *compilation) checkField(path *field.Path, text string) bool {
	typeText, markers, found := strings.Cut(text, "|")
	problems := c.fields.typeProblems(typeText)
	unknownTypes := len(problems) > 0
	if found {
		parsed, err := simpleschema.ParseMarkers(markers)
		switch {
		case err != nil:
			problems = append(problems, syntaxProblem(err))
		case !unknownTypes:
			problems = append(problems, c.fields.markerProblems(text, typeText, parsed)...)
		}
	}
	for _, problem := range problems {
		c.refuse(field.Invalid(path, text, problem))
	}
	return len(problems) == 0 && (!c.fields.noTypes || len(typesIn(text)) == 0)
}

// typeProblems are what is wrong with the type of a field.
func (s *simpleSchema) typeProblems(text string) []string {
	parsed, err := simpleschema.ParseTypeString(text)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, name := range parsed.Deps() {
		if _, known := s.types[name]; !known && !s.noTypes {
			out = append(out, fmt.Sprintf("unknown type %q, expected string, integer, float, boolean, object, []<type>, map[string]<type> or %s",
				name, s.knownTypes()))
		}
	}
	return out
}

func (s *simpleSchema) knownTypes() string {
	names := slices.Sorted(maps.Keys(s.types))
	switch {
	case len(names) == 0:
		return "a type of spec.schema.types, which has none"
	case len(names) > maxSuggestions:
		names = append(names[:maxSuggestions], "…")
	}
	return "a type of spec.schema.types: " + strings.Join(names, ", ")
}

// schemaOf is the schema of one field, as far as markers depend on it: the author's objects have no
// fields in it, since they can be large and every field has its own.
func (s *simpleSchema) schemaOf(text string) (*apiextensionsv1.JSONSchemaProps, error) {
	const only = "v"
	types := make(map[string]any)
	s.outline(text, types)
	parent, err := simpleschema.ToOpenAPISpec(map[string]any{only: text}, types)
	if err != nil {
		return nil, err
	}
	out := parent.Properties[only]
	return &out, nil
}

// outline collects the types that a field is made of.
func (s *simpleSchema) outline(text string, into map[string]any) {
	for _, name := range typesIn(text) {
		if _, done := into[name]; done {
			continue
		}
		into[name] = "object"
		if alias, ok := s.soundTypes[name].(string); ok {
			into[name] = alias
			s.outline(alias, into)
		}
	}
}

// collectUsed collects the types that fields are made of, and those that these are made of.
func (s *simpleSchema) collectUsed(tree any, into map[string]bool) {
	for _, name := range typesIn(tree) {
		if !into[name] {
			into[name] = true
			s.collectUsed(s.soundTypes[name], into)
		}
	}
}

// schema is the schema of the whole spec, as far as it has no errors.
func (s *simpleSchema) schema() (*apiextensionsv1.JSONSchemaProps, error) {
	if s.noFields {
		whole, err := s.schemaOf(notUnderstood)
		return whole, err
	}
	return simpleschema.ToOpenAPISpec(s.soundFields, s.soundTypes)
}

// unusedTypes is an object with a field for each type that the spec isn't made of; nil if there are none.
func (s *simpleSchema) unusedTypes() *apiextensionsv1.JSONSchemaProps {
	used := make(map[string]bool)
	s.collectUsed(s.soundFields, used)
	unused := make(map[string]any)
	for name := range s.soundTypes {
		if !used[name] {
			unused[name] = name
		}
	}
	if len(unused) == 0 {
		return nil
	}
	out, err := simpleschema.ToOpenAPISpec(unused, s.soundTypes)
	if err != nil {
		return nil
	}
	return out
}
