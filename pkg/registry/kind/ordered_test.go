package kind

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWhatIsWrongIsToldInTheOrderOfFields(t *testing.T) {
	spec := field.NewPath("spec")
	want := field.ErrorList{
		field.Required(spec.Child("a"), ""),
		field.Invalid(spec.Child("list").Index(2), 1, "one"),
		field.Invalid(spec.Child("list").Index(2), 1, "two"),
		field.Invalid(spec.Child("list").Index(10), 1, "one"),
		field.Invalid(nil, nil, "some rules were not checked"),
	}
	for shift := range want {
		got := ordered(append(slices.Clone(want[shift:]), want[:shift]...))
		if !slices.Equal(got, want) {
			t.Errorf("starting with %v: %v", want[shift], got)
		}
	}
}
