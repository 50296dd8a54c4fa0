package kro

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/kubernetes-sigs/kro/pkg/cel/conversion"
	"github.com/kubernetes-sigs/kro/pkg/cel/sentinels"
)

// native is a CEL value as it goes into objects: JSON values of its own, shared with nothing, with
// kro's sentinel in the place of omit() and of an optional value that there isn't. Values in a CEL result
// can be shared many times over, so the size is bounded while it is unfolded.
func native(value ref.Val) (any, error) {
	out, _, err := sized(value, sentinels.Omit{})
	return out, err
}

// sized is native, and about how many bytes that is. empty stands for an optional value that there isn't.
func sized(value ref.Val, empty any) (out any, size int, err error) {
	unfolding := unfolding{left: maxValue, empty: empty}
	out, err = unfolding.value(value)
	return out, maxValue - unfolding.left, err
}

type unfolding struct {
	left  int
	empty any
}

func (u *unfolding) value(value ref.Val) (any, error) {
	if err := u.take(elementSize); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case nil:
		return nil, nil
	case types.String:
		return string(v), u.take(len(v))
	case *types.Optional:
		if !v.HasValue() {
			return u.empty, nil
		}
		return u.value(v.GetValue())
	case traits.Mapper:
		return u.mapping(v)
	case traits.Lister:
		return u.list(v)
	}
	out, err := conversion.GoNativeType(value)
	if err != nil {
		return nil, err
	}
	return conversion.EnsureJSONSafe(out)
}

func (u *unfolding) take(n int) error {
	if u.left -= n; u.left < 0 {
		return tooLarge(maxValue + 1)
	}
	return nil
}

func (u *unfolding) list(list traits.Lister) (any, error) {
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		element, err := u.value(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, element)
	}
	return out, nil
}

func (u *unfolding) mapping(mapping traits.Mapper) (any, error) {
	// A map that an object holds is taken as it is stored: the data of a Secret, passed on as a
	// whole, stays base64.
	if stored, ok := mapping.Value().(map[string]any); ok {
		return u.stored(stored)
	}
	out := map[string]any{}
	for it := mapping.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map's key is %s, expected string", key.Type().TypeName())
		}
		value, found := mapping.Find(name)
		if !found {
			continue
		}
		if err, ok := value.(*types.Err); ok {
			return nil, err
		}
		element, err := u.value(value)
		if err != nil {
			return nil, err
		}
		out[string(name)] = element
	}
	return out, nil
}

// stored copies a JSON value.
func (u *unfolding) stored(value any) (any, error) {
	if err := u.take(elementSize); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, element := range v {
			copied, err := u.stored(element)
			if err != nil {
				return nil, err
			}
			out[key] = copied
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for _, element := range v {
			copied, err := u.stored(element)
			if err != nil {
				return nil, err
			}
			out = append(out, copied)
		}
		return out, nil
	case string:
		return v, u.take(len(v))
	case nil, bool, int64, float64:
		return v, nil
	default:
		return u.value(types.DefaultTypeAdapter.NativeToValue(v))
	}
}
