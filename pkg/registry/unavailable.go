package registry

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/plane"
)

// RetryAfterSeconds is when a client that was refused because something can't be reached, or is
// busy, is told to try again.
const RetryAfterSeconds = 2

// Unavailable passes the Status of an API server on, since it says more, and makes anything else a 503 that
// is worth a retry, unless it has taken long already. Its cause is what failed on the way, which says where krop's servers are: that is logged,
// and no client is told.
func Unavailable(what string, cause error) error {
	var status apierrors.APIStatus
	if errors.As(cause, &status) && !errors.Is(cause, plane.ErrNotReachable) {
		return &apierrors.StatusError{ErrStatus: status.Status()} // without what it was wrapped in on the way
	}
	klog.Background().Info("something a request needs is unavailable", "what", what, "err", cause)
	if plane.TimedOut(cause) {
		return apierrors.NewServiceUnavailable(what)
	}
	return TryAgain(what)
}

// TryAgain is a 503 that says what is in the way, and when to try again.
func TryAgain(what string) error {
	refusal := apierrors.NewServiceUnavailable(what)
	refusal.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: RetryAfterSeconds}
	return refusal
}
