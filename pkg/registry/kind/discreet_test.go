package kind

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

func TestConversionErrorsSayWhereAndWhatButNoValue(t *testing.T) {
	const secret = "hunter2"
	got := withoutValues(typed.ValidationErrors{
		{Path: ".spec.size", ErrorMessage: "expected string, got &value.valueUnstructured{Value:" + secret + "}"},
		{Path: `.spec.items[name="` + secret + `"].port`, ErrorMessage: "expected numeric (int or float), got " + secret},
		{Path: ".spec.items", ErrorMessage: `duplicate entries for key [name="` + secret + `"]`},
		{Path: ".spec", ErrorMessage: "list element: 3: " + secret},
	}).Error()
	if strings.Contains(got, secret) {
		t.Error(got)
	}
	for _, want := range []string{".spec.size: expected string", ".spec.items[].port: expected numeric (int or float)", ".spec.items: duplicate entries"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if other := errors.New("no such type"); !errors.Is(withoutValues(other), other) || withoutValues(nil) != nil {
		t.Error("other errors were changed")
	}
}
