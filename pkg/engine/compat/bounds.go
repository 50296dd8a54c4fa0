package compat

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bounds compares what limits a value from below and from above.
func (c *comparison) bounds(before, after *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	for _, change := range []string{
		raised("minimum", before.Minimum, after.Minimum),
		lowered("maximum", before.Maximum, after.Maximum),
		excluded("minimum", end{before.Minimum, before.ExclusiveMinimum}, end{after.Minimum, after.ExclusiveMinimum}),
		excluded("maximum", end{before.Maximum, before.ExclusiveMaximum}, end{after.Maximum, after.ExclusiveMaximum}),
		raised("minLength", before.MinLength, after.MinLength),
		lowered("maxLength", before.MaxLength, after.MaxLength),
		raised("minItems", before.MinItems, after.MinItems),
		lowered("maxItems", before.MaxItems, after.MaxItems),
		raised("minProperties", before.MinProperties, after.MinProperties),
		lowered("maxProperties", before.MaxProperties, after.MaxProperties),
		coarser(before.MultipleOf, after.MultipleOf),
	} {
		if change != "" {
			c.broken(at, "%s", change)
		}
	}
}

// raised says that a lower bound is new or has gone up, and is empty otherwise.
func raised[T cmp.Ordered](name string, before, after *T) string {
	switch {
	case after == nil:
		return ""
	case before == nil:
		return added(name, *after)
	case *after > *before:
		return fmt.Sprintf("%s rises from %s to %s", name, number(*before), number(*after))
	default:
		return ""
	}
}

// lowered says that an upper bound is new or has gone down.
func lowered[T cmp.Ordered](name string, before, after *T) string {
	switch {
	case after == nil:
		return ""
	case before == nil:
		return added(name, *after)
	case *after < *before:
		return fmt.Sprintf("%s falls from %s to %s", name, number(*before), number(*after))
	default:
		return ""
	}
}

// end is one end of a range of numbers.
type end struct {
	at        *float64
	exclusive bool
}

// excluded says that a bound that stays where it is does not belong to the range any more.
func excluded(name string, before, after end) string {
	if before.at == nil || after.at == nil || *before.at != *after.at || before.exclusive || !after.exclusive {
		return ""
	}
	return fmt.Sprintf("%s %s is itself excluded", name, number(*after.at))
}

// coarser says that values have to be multiples of more than before.
func coarser(before, after *float64) string {
	switch {
	case after == nil:
		return ""
	case before == nil:
		return added("multipleOf", *after)
	case math.Mod(*before, *after) != 0:
		return fmt.Sprintf("multipleOf changes from %s to %s", number(*before), number(*after))
	default:
		return ""
	}
}

func added[T cmp.Ordered](name string, value T) string {
	return fmt.Sprintf("%s %s is added", name, number(value))
}

// number is a bound as its author writes it: 1000000, and not 1e+06.
func number[T cmp.Ordered](value T) string {
	if f, ok := any(value).(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
