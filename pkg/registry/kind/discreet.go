package kind

import (
	"errors"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// discreetConverter keeps values out of the errors of the converter that it wraps. The library logs
// them, and what doesn't fit the schema may well be a secret in the wrong place.
type discreetConverter struct{ managedfields.TypeConverter }

// ObjectToTyped implements managedfields.TypeConverter.
func (c discreetConverter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := c.TypeConverter.ObjectToTyped(object, options...)
	return value, withoutValues(err)
}

// withoutValues leaves of each problem where it is and what was expected.
func withoutValues(err error) error {
	var problems typed.ValidationErrors
	if !errors.As(err, &problems) {
		return err
	}
	discreet := make(typed.ValidationErrors, 0, len(problems))
	for _, problem := range problems {
		discreet = append(discreet, typed.ValidationError{
			Path:         elementKeys.ReplaceAllString(problem.Path, "[]"),
			ErrorMessage: expectation(problem.ErrorMessage),
		})
	}
	return discreet
}

// elementKeys are the keys by which a path names an element of a list.
var elementKeys = regexp.MustCompile(`\[[^\]]*\]`)

// expectation cuts a message off where the library goes on to quote a value.
func expectation(message string) string {
	for _, quote := range []string{", got ", " for key ", ": "} {
		message, _, _ = strings.Cut(message, quote)
	}
	return message
}
