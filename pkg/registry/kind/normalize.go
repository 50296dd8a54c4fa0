package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Normalize makes object fit the schema, in place, and says what doesn't fit: it prunes, fills in
// defaults, and validates spec, status and the kind's rules. It is for what krop adds to an object
// after the store has validated what the user sent, such as status. old is the stored object, or nil
// on create: with it, rules see the old values, and what was wrong before and hasn't changed is let pass.
func (k *Kind) Normalize(ctx context.Context, object, old *unstructured.Unstructured) field.ErrorList {
	if _, err := k.schema.coerce(object, coercion{}); err != nil {
		return field.ErrorList{field.Invalid(nil, object.GetName(), err.Error())}
	}
	k.schema.Default(object)
	if old == nil {
		return k.strategy.Validate(ctx, object)
	}
	return k.strategy.ValidateUpdate(ctx, object, old)
}
