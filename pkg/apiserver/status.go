package apiserver

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// retryAfterSeconds is what a client waits after a 503: long enough not to hammer a starting server,
// short enough that nobody notices once it has started.
const retryAfterSeconds = 1

// codecs encode what the server itself answers: statuses and discovery.
var codecs = serializer.NewCodecFactory(newScheme())

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}

// writeStatus answers with an error as a Status, with Retry-After if it carries one.
func writeStatus(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{}, w, r)
}

func status(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

func badPath(message string) *apierrors.StatusError {
	return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, message)
}

// notServed is the answer for what does not exist here at all. It is never given for what may exist
// and merely isn't known yet: kcp's garbage collector takes a 404 for proof.
func notServed(message string) *apierrors.StatusError {
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource: "+message)
}

func forbidden(format string, arguments ...any) *apierrors.StatusError {
	return status(http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf(format, arguments...))
}

func notAllowed(message string) *apierrors.StatusError {
	return status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, message)
}

// notYet is the answer while something needed for the right answer isn't known.
func notYet(message string) *apierrors.StatusError {
	err := status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return err
}

// tooMany is the answer to a caller that has as many requests running as it may.
func tooMany(message string) *apierrors.StatusError {
	err := status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return err
}
