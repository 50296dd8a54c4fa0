package kro

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/simpleschema"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// markerNames are all markers there are, for who misspelled one.
const markerNames = "required, default, description, minimum, maximum, minLength, maxLength, pattern, enum, minItems, maxItems, " +
	"uniqueItems, listType, listMapKey, validation, immutable"

var (
	unknownMarker = regexp.MustCompile(`unknown marker: (.*)$`)
	bareMarker    = regexp.MustCompile(`^marker key '(.*)' without a value$`)
	// fieldPrefix is how kro says which field it is about; the error's path says it.
	fieldPrefix = regexp.MustCompile(`^(field [^:]*: )+`)
	badDefault  = regexp.MustCompile(`default value must be a valid (\w+), got: `)
)

// syntaxProblem is kro's error about text that is no list of markers.
func syntaxProblem(err error) string {
	text := err.Error()
	if match := unknownMarker.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("unknown marker %q, expected one of %s", match[1], markerNames)
	}
	if match := bareMarker.FindStringSubmatch(text); match != nil {
		return fmt.Sprintf("expected markers of the form name=value, found %q", strings.TrimSpace(match[1]))
	}
	return "expected markers of the form name=value: " + text
}

// markerProblems are what is wrong with the markers of a field: each by itself, otherwise all together.
func (s *simpleSchema) markerProblems(text, typeText string, markers []*simpleschema.Marker) []string {
	schema, together := s.schemaOf(text)
	if together == nil {
		return contradictions(schema)
	}
	var out []string
	for _, marker := range markers {
		if marker.MarkerType == simpleschema.MarkerTypeListMapKey {
			continue // means something beside listType only
		}
		if _, err := s.schemaOf(typeText + "|" + marker.Key + "=" + markerQuoted(marker.Value)); err != nil {
			out = append(out, markerProblem(marker, err))
		}
	}
	if len(out) == 0 {
		out = append(out, fieldPrefix.ReplaceAllString(together.Error(), ""))
	}
	return out
}

// markerQuoted is a value as SimpleSchema has it in quotes.
func markerQuoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// parsedAs are the functions that kro's errors come from, and what they expect.
var parsedAs = map[string]string{"ParseFloat": "a number", "ParseInt": "an integer", "ParseBool": "true or false"}

func markerProblem(marker *simpleschema.Marker, err error) string {
	var number *strconv.NumError
	switch {
	case errors.As(err, &number) && parsedAs[number.Func] != "":
		return fmt.Sprintf("%s: expected %s, found %q", marker.Key, parsedAs[number.Func], number.Num)
	case badDefault.MatchString(err.Error()):
		return fmt.Sprintf("%s: expected %s, found %q", marker.Key, badDefault.FindStringSubmatch(err.Error())[1], marker.Value)
	case marker.MarkerType == simpleschema.MarkerTypeValidation:
		return marker.Key + ": expected a rule in CEL, such as \"self > 1\""
	default:
		return marker.Key + ": " + fieldPrefix.ReplaceAllString(err.Error(), "")
	}
}

// contradictions are markers that leave no value for the field.
func contradictions(schema *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for name, bound := range map[string]*float64{"minimum": schema.Minimum, "maximum": schema.Maximum} {
		if bound != nil && (math.IsNaN(*bound) || math.IsInf(*bound, 0)) {
			out = append(out, fmt.Sprintf("%s: expected a finite number, found %v", name, *bound))
		}
	}
	if schema.Minimum != nil && schema.Maximum != nil && *schema.Minimum > *schema.Maximum {
		out = append(out, fmt.Sprintf("no value can satisfy it: minimum %v is above maximum %v", *schema.Minimum, *schema.Maximum))
	}
	if schema.MinLength != nil && schema.MaxLength != nil && *schema.MinLength > *schema.MaxLength {
		out = append(out, fmt.Sprintf("no value can satisfy it: minLength %d is above maxLength %d", *schema.MinLength, *schema.MaxLength))
	}
	if schema.MinItems != nil && schema.MaxItems != nil && *schema.MinItems > *schema.MaxItems {
		out = append(out, fmt.Sprintf("no value can satisfy it: minItems %d is above maxItems %d", *schema.MinItems, *schema.MaxItems))
	}
	return out
}
