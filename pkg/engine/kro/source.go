package kro

import (
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/simpleschema"
	"github.com/kubernetes-sigs/kro/pkg/simpleschema/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// source is the field of the blueprint that a field of the definition comes from.
func (s *simpleSchema) source(crdField string) string {
	if below := belowRoot(crdField); below != "" {
		return s.sourceOfSchema(below)
	}
	switch {
	case strings.HasPrefix(crdField, "spec.names.shortNames"), strings.HasPrefix(crdField, "spec.names.categories"):
		return "spec.schema." + strings.TrimPrefix(crdField, "spec.names.")
	case strings.HasPrefix(crdField, "spec.names"), crdField == "metadata.name":
		return "spec.schema.kind"
	case crdField == "spec.version", crdField == "spec.versions[0].name", strings.HasPrefix(crdField, "status.storedVersions"):
		return "spec.schema.apiVersion"
	case strings.HasPrefix(crdField, "metadata."):
		return "spec.schema." + crdField
	}
	below := strings.TrimPrefix(strings.TrimPrefix(crdField, "spec."), "versions[0].")
	// Validation writes the name of the Go field.
	return "spec.schema." + strings.Replace(below, "].JSONPath", "].jsonPath", 1)
}

func (s *simpleSchema) sourceOfSchema(below string) string {
	path := field.NewPath("spec", "schema")
	roots := map[string]any{"spec": s.fields, "types": s.types}
	match := property.FindStringSubmatch(below)
	if match == nil || roots[match[1]] == nil {
		return path.String() + withoutProperties(below)
	}
	path, rest := s.locate(path.Child(match[1]), roots[match[1]], below[len(match[0]):])
	return path.String() + withoutProperties(rest)
}

// locate goes down the author's fields, and from those that have a type of the author's to that.
func (s *simpleSchema) locate(path *field.Path, tree any, rest string) (*field.Path, string) {
	switch v := tree.(type) {
	case map[string]any:
		if match := property.FindStringSubmatch(rest); match != nil {
			return s.locate(child(path, match[1]), v[match[1]], rest[len(match[0]):])
		}
	case string:
		parsed, markers, err := simpleschema.ParseField(v)
		if err != nil {
			return path, rest
		}
		name, below := elementType(parsed, rest)
		if name != "" && s.types[name] != nil && (below != rest || isBelow(below) || !setsDefault(markers) && strings.HasPrefix(below, ".default")) {
			return s.locate(child(field.NewPath("spec", "schema", "types"), name), s.types[name], below)
		}
	}
	return path, rest
}

// elementType is the author's type, if it is one, of the elements that the path leads to.
func elementType(parsed types.Type, path string) (name, rest string) {
	switch t := parsed.(type) {
	case types.Custom:
		return string(t), path
	case types.Slice:
		if below, found := strings.CutPrefix(path, ".items"); found {
			return elementType(t.Elem, below)
		}
	case types.Map:
		if below, found := strings.CutPrefix(path, ".additionalProperties"); found {
			return elementType(t.Value, below)
		}
	}
	return "", path
}

func isBelow(path string) bool {
	return strings.HasPrefix(path, ".properties[") || strings.HasPrefix(path, ".items") || strings.HasPrefix(path, ".additionalProperties")
}

func setsDefault(markers []*simpleschema.Marker) bool {
	for _, marker := range markers {
		if marker.MarkerType == simpleschema.MarkerTypeDefault {
			return true
		}
	}
	return false
}

// withoutProperties is the path of a schema as that of a field.
func withoutProperties(path string) string {
	var out strings.Builder
	for path != "" {
		if match := property.FindStringSubmatch(path); match != nil {
			out.WriteString("." + match[1])
			path = path[len(match[0]):]
			continue
		}
		next := strings.Index(path[1:], ".properties[")
		if next < 0 {
			next = len(path) - 1
		}
		out.WriteString(path[:next+1])
		path = path[next+1:]
	}
	return out.String()
}
