package kind

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
)

// validationTime is how long the rules of a schema may take; they look at it in loops.
var validationTime = time.Duration(budget.ValidationSeconds.Default) * time.Second

// boundedStrategy is upstream's strategy, which tests nothing that would take too long.
type boundedStrategy struct {
	customResourceStrategy
	tests *textTests
}

// Validate validates an object that is new.
func (s boundedStrategy) Validate(ctx context.Context, object runtime.Object) field.ErrorList {
	if content, ok := object.(*unstructured.Unstructured); ok {
		if problems := s.tests.check(content.Object); len(problems) > 0 {
			return problems
		}
	}
	return inTime(ctx, func(ctx context.Context) field.ErrorList { return s.customResourceStrategy.Validate(ctx, object) })
}

// ValidateUpdate lets pass what was stored before the schema had such tests and isn't touched: it could not be deleted
// otherwise.
func (s boundedStrategy) ValidateUpdate(ctx context.Context, object, old runtime.Object) field.ErrorList {
	now, ok := object.(*unstructured.Unstructured)
	before, wasOne := old.(*unstructured.Unstructured)
	if ok && wasOne {
		problems := s.tests.check(now.Object)
		if len(problems) > 0 && equality.Semantic.DeepEqual(now.Object["spec"], before.Object["spec"]) {
			return validation.ValidateObjectMetaAccessorUpdate(now, before, field.NewPath("metadata"))
		}
		if len(problems) > 0 {
			return problems
		}
	}
	return inTime(ctx, func(ctx context.Context) field.ErrorList {
		return s.customResourceStrategy.ValidateUpdate(ctx, object, old)
	})
}

func inTime(ctx context.Context, validate func(context.Context) field.ErrorList) field.ErrorList {
	limited, cancel := context.WithTimeout(ctx, validationTime)
	defer cancel()
	problems := validate(limited)
	if limited.Err() != nil && ctx.Err() == nil && len(problems) > 0 {
		return field.ErrorList{field.Forbidden(field.NewPath("spec"), budget.Limits{}.More(budget.ValidationSeconds).Error())}
	}
	return problems
}
