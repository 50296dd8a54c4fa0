package registry

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RetryAfterSeconds is when a client that was refused because something can't be reached, or is
// busy, is told to try again.
const RetryAfterSeconds = 2

// Unavailable passes a Status on, since it says more, and makes anything else a 503 that is worth a retry.
func Unavailable(what string, cause error) error {
	var status apierrors.APIStatus
	if errors.As(cause, &status) {
		return cause
	}
	refusal := apierrors.NewServiceUnavailable(fmt.Sprintf("%s: %v", what, cause))
	refusal.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: RetryAfterSeconds}
	return refusal
}
