package registry

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Refused makes a Status of an error that names a bound: 422, 413, or 429 with the time after which to try again. Any
// other error it returns as it is.
func Refused(err error) error {
	var over *budget.Over
	var already apierrors.APIStatus
	if !errors.As(err, &over) || errors.As(err, &already) {
		return err
	}
	switch over.Answer {
	case budget.TooLarge:
		return apierrors.NewRequestEntityTooLargeError(over.Error())
	case budget.Busy:
		return apierrors.NewTooManyRequests(over.Error(), RetryAfterSeconds)
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: over.Error(),
		}}
	}
}

// CheckSize refuses an object that is larger than the bound, not counting what isn't its author's: status, and who owns
// which field. With these it must still be something that can be stored.
func CheckSize(limits budget.Limits, bound *budget.Bound, object *unstructured.Unstructured) error {
	all := engine.JSONSize(object.Object)
	owners, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	if err := limits.Check(bound, all-engine.JSONSize(object.Object["status"])-engine.JSONSize(owners)); err != nil {
		return Refused(err)
	}
	return Refused(limits.Check(budget.StoredBytes, all))
}
