package kro

import (
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
)

// maxValue bounds, in bytes and in elements, what one call or one expression may give: more than
// etcd lets any object have.
const maxValue = 4 << 20

// CEL adds up costs after each call, so that one call that makes much out of little ("a" repeated a
// million times, each replaced by a megabyte) has already taken the memory. sizes say before the call
// how much will come out of it, in bytes; more than maxValue is refused.
var sizes = map[string]func(args []ref.Val) int{
	"random.seededString": func(args []ref.Val) int { return integer(args, 0) },
	"replace":             replaced,
	"join":                joined,
	"split":               func(args []ref.Val) int { return len(text(args, 0)) },
	"format":              deepSize,
	"strings.format":      deepSize,
	"json.marshal":        deepSize,
	"hash.sha256":         deepSize,
	"hash.md5":            deepSize,
	"hash.fnv64a":         deepSize,
}

func integer(args []ref.Val, i int) int {
	if i < len(args) {
		if n, ok := args[i].(types.Int); ok {
			return int(min(int64(n), maxValue+1))
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

func replaced(args []ref.Val) int {
	target, old, replacement := text(args, 0), text(args, 1), text(args, 2)
	count := strings.Count(target, old)
	if len(args) > 3 {
		if n, ok := args[3].(types.Int); ok && n >= 0 {
			count = min(count, int(n))
		}
	}
	if len(replacement) > 0 && count > maxValue/len(replacement) {
		return maxValue + 1
	}
	return len(target) + count*len(replacement)
}

func joined(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	separators := len(text(args, 1))
	if n, ok := list.Size().(types.Int); ok && separators > 0 && int(n) > maxValue/separators {
		return maxValue + 1
	}
	n, _ := list.Size().(types.Int)
	return deepSize(args[:1]) + int(n)*separators
}

func deepSize(args []ref.Val) int {
	walk := measure{left: maxValue}
	for _, arg := range args {
		walk.value(arg)
	}
	return maxValue - walk.left
}

// measure counts bytes and elements of a value as it would be if nothing in it were shared, and
// stops when there are more than what is left.
type measure struct{ left int }

func (m *measure) value(value ref.Val) {
	m.left--
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

// implementations are the functions of sizes as their libraries bind them, by overload.
var implementations = sync.OnceValues(func() (map[string]functions.FunctionOp, error) {
	env, err := cel.NewEnv(krocel.BaseDeclarations()...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]functions.FunctionOp)
	for name := range sizes {
		function, ok := env.Functions()[name]
		if !ok {
			continue
		}
		bindings, err := function.Bindings()
		if err != nil {
			return nil, err
		}
		for _, binding := range bindings {
			out[name+"/"+binding.Operator] = operation(binding)
		}
	}
	return out, nil
})

func operation(binding *functions.Overload) functions.FunctionOp {
	switch {
	case binding.Function != nil:
		return binding.Function
	case binding.Unary != nil:
		return func(args ...ref.Val) ref.Val { return binding.Unary(args[0]) }
	default:
		return func(args ...ref.Val) ref.Val { return binding.Binary(args[0], args[1]) }
	}
}

// guardCalls replaces calls of the functions in sizes by guarded ones.
func guardCalls(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := node.(interpreter.InterpretableCall)
	if !ok || sizes[call.Function()] == nil {
		return node, nil
	}
	bound, err := implementations()
	if err != nil {
		return nil, err
	}
	operation, ok := bound[call.Function()+"/"+call.OverloadID()]
	if !ok {
		// Not resolved when it was checked: the function finds the overload by its arguments.
		if operation, ok = bound[call.Function()+"/"+call.Function()]; !ok {
			return node, nil
		}
	}
	return guarded(call, operation), nil
}

func guarded(call interpreter.InterpretableCall, operation functions.FunctionOp) interpreter.InterpretableV2 {
	sizeOf := sizes[call.Function()]
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if sizeOf(args) > maxValue {
			return types.NewErr("%s: the result would be larger than %d bytes", call.Function(), maxValue)
		}
		return operation(args...)
	})
}
