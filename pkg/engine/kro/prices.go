package kro

import (
	"errors"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

const (
	// bytesPerUnit is how many bytes a call looks at in the time that another call takes.
	bytesPerUnit = 10
)

// prices are the calls whose time or memory depends on their arguments: for each, about how many
// bytes it looks at or makes. They are known before the call is made, since one call can make very
// much out of little ("a" repeated a million times, each replaced by a megabyte).
var prices = map[string]func(args []ref.Val) int{
	operators.Add: plus, operators.Equals: comparison, operators.NotEquals: comparison, operators.In: membership,
	operators.Less: comparison, operators.LessEquals: comparison, operators.Greater: comparison, operators.GreaterEquals: comparison,

	"contains": linear, "startsWith": linear, "endsWith": linear, "charAt": linear, "indexOf": position, "lastIndexOf": position,
	"lowerAscii": linear, "upperAscii": linear, "trim": linear, "substring": linear, "reverse": linear, "strings.quote": linear,
	"size": linear, "string": linear, "bytes": linear, "int": linear, "double": linear, "timestamp": linear, "duration": linear,
	"quantity": exponent, "isQuantity": exponent, "url": linear, "isURL": linear, "ip": linear, "isIP": linear, "cidr": linear, "isCIDR": linear,
	"semver": linear, "isSemver": linear, "base64.encode": linear, "base64.decode": linear,
	"hash.sha256": linear, "hash.md5": linear, "hash.fnv64a": linear,
	"split": parts, "join": joined, "replace": replaced, "format": deepSize, "strings.format": deepSize,
	"matches": matching, "find": matching, "findAll": matching,
	"json.marshal": deepSize, "json.encode": deepSize, "json.unmarshal": unmarshalled,

	"sum": linear, "min": linear, "max": linear, "isSorted": linear, "slice": linear,
	"sort": sorting, "lists.@sortByAssociatedKeys": sorting, "@sortByAssociatedKeys": sorting, "distinct": pairs, "flatten": deepSize,
	"lists.setAtIndex": linear, "lists.insertAtIndex": linear, "lists.removeAtIndex": linear,
	"lists.range": func(args []ref.Val) int { return integer(args, 0) * elementSize },
	"merge":       linear, "deepMerge": deepSize,

	"random.seededString": func(args []ref.Val) int { return integer(args, 0) },
}

// elementSize is what an element of a list or map counts for, in bytes.
const elementSize = bytesPerUnit

// size is the size of a value without that of the values in it.
func size(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return int(min(max(n, 0), types.Int(maxValue)+1)) * elementSize
		}
	}
	return 0
}

func linear(args []ref.Val) int {
	total := 0
	for _, arg := range args {
		total = added(total, size(arg))
	}
	return total
}

// plus is the price of a sum. Lists are only linked, but for those that are sets or maps by their schema. One that is
// linked to itself can't be longer than what a call may look at.
func plus(args []ref.Val) int {
	_, isList := args[0].(traits.Lister)
	_, isLinked := args[0].(traits.Foldable) // CEL's own are
	if length := linear(args); !isList || !isLinked || length > maxValue {
		return length
	}
	return elementSize
}

func comparison(args []ref.Val) int {
	if hasParts(args[0]) {
		return min(deepSize(args[:1]), deepSize(args[1:]))
	}
	return min(size(args[0]), size(args[1]))
}

// hasParts says whether comparing the value with another compares what is in it: it may hold very much, since values can
// be shared.
func hasParts(value ref.Val) bool {
	switch value.(type) {
	case traits.Lister, traits.Mapper, *types.Optional:
		return true
	default:
		return false
	}
}

// membership is the price of looking for a value in a list, or for a key in a map.
func membership(args []ref.Val) int { return sought(args[0], args[1]) }

// position is the price of looking for a text in a text, or for a value in a list.
func position(args []ref.Val) int { return sought(args[1], args[0]) }

func sought(value, in ref.Val) int {
	if _, isList := in.(traits.Lister); isList && hasParts(value) {
		each := deepSize([]ref.Val{value})
		return min(bounded(size(in)/elementSize, each), deepSize([]ref.Val{in}))
	}
	return linear([]ref.Val{value, in})
}

// log2 is the number of times that a sort compares each element, for lists as long as they get.
const log2 = 20

func sorting(args []ref.Val) int { return bounded(linear(args), log2) }

// pairs is the price of comparing each element of a list with each other.
func pairs(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	length, total := size(list)/elementSize, 0
	for it := list.Iterator(); total <= maxValue && it.HasNext() == types.True; {
		if element := it.Next(); hasParts(element) {
			total = added(total, deepSize([]ref.Val{element}))
		} else {
			total += elementSize
		}
	}
	return bounded(total, length)
}

// maxExponent is how large the exponent of a quantity may be, and how long its text: all of its digits are made to
// read or compare it, so that "1e-2147483647" takes hours.
const maxExponent = 1000

// exponent is the price of reading a quantity.
func exponent(args []ref.Val) int {
	written := text(args, 0)
	if len(written) > maxExponent {
		return maxValue + 1
	}
	if at := strings.LastIndexAny(written, "eE"); at >= 0 {
		digits := strings.TrimLeft(written[at+1:], "+-0")
		if n, err := strconv.Atoi(digits); len(digits) > 0 && (errors.Is(err, strconv.ErrRange) || err == nil && n > maxExponent) {
			return maxValue + 1
		}
	}
	return linear(args)
}

// matching is the price of a regular expression, each state of which may be a step to be tried at
// each character of the text.
func matching(args []ref.Val) int {
	size := engine.PatternStates(text(args, 1))
	if size > budget.PatternStates.Default {
		return manyStates
	}
	return bounded(len(text(args, 0))+1, size+1)
}

func integer(args []ref.Val, i int) int {
	if i < len(args) {
		if n, ok := args[i].(types.Int); ok {
			return int(min(max(int64(n), 0), int64(maxValue)+1))
		}
	}
	return 0
}

func text(args []ref.Val, i int) string {
	if i < len(args) {
		if s, ok := args[i].(types.String); ok {
			return string(s)
		}
	}
	return ""
}

// bounded is the product, or something larger than maxValue.
func bounded(a, b int) int {
	if a > 0 && b > maxValue/a {
		return maxValue + 1
	}
	return a * b
}

func replaced(args []ref.Val) int {
	target, old, replacement := text(args, 0), text(args, 1), text(args, 2)
	count := strings.Count(target, old)
	if n := integer(args, 3); len(args) > 3 {
		count = min(count, n)
	}
	return len(target) + bounded(count, len(replacement))
}

// parts is the price of a text that is split: each part is an element.
func parts(args []ref.Val) int {
	count := strings.Count(text(args, 0), text(args, 1)) + 1
	if n := integer(args, 2); len(args) > 2 && n > 0 {
		count = min(count, n)
	}
	return len(text(args, 0)) + bounded(count, elementSize)
}

// unmarshalled is the price of JSON that is read: "[1,1,1]" has an element every other byte.
func unmarshalled(args []ref.Val) int { return bounded(linear(args), elementSize/2) }

func joined(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	n, _ := list.Size().(types.Int)
	return deepSize(args[:1]) + bounded(int(n), len(text(args, 1)))
}

// deepSize counts bytes and elements of values as they would be if nothing in them were shared.
func deepSize(args []ref.Val) int {
	m := measure{left: maxValue}
	for _, arg := range args {
		m.value(arg)
	}
	return maxValue - m.left
}

// measure stops when there is more than what is left.
type measure struct{ left int }

func (m *measure) value(value ref.Val) {
	m.left -= elementSize
	if m.left < 0 {
		return
	}
	switch v := value.(type) {
	case types.String:
		m.left -= len(v)
	case types.Bytes:
		m.left -= len(v)
	case *types.Optional:
		if v.HasValue() {
			m.value(v.GetValue())
		}
	case traits.Mapper:
		for it := v.Iterator(); m.left >= 0 && it.HasNext() == types.True; {
			key := it.Next()
			m.value(key)
			if found, ok := v.Find(key); ok {
				m.value(found)
			}
		}
	case traits.Lister:
		for it := v.Iterator(); m.left >= 0 && it.HasNext() == types.True; {
			m.value(it.Next())
		}
	}
}
