package plane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reach tells errors of the way to a server from its answers. Answers are passed on as they are. The
// caller's own cancellation is no fault of the plane's.
func reach(err error) error {
	if errors.Is(err, ErrNotReachable) {
		return err
	}
	if status, ok := answer(err); ok {
		if fromProxy(status) {
			return fmt.Errorf("%w: %w", ErrNotReachable, err)
		}
		return err
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotReachable, err)
}

// IsTransient says whether something could not be reached, or was too busy, so that the same may succeed a
// moment later without anybody's doing.
func IsTransient(err error) bool {
	return errors.Is(err, ErrNotReachable) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// TimedOut says whether something took all of the time that there was for it. Whoever asked has waited for that long, and
// shouldn't be told to try again at once: clients do, kubectl ten times, and nobody sees an answer for minutes.
func TimedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answer is what a server said, if the error is an answer at all.
func answer(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return metav1.Status{}, false
	}
	return status.Status(), true
}

// fromProxy says whether the answer comes from something between krop and the API server, which
// could not reach it either.
func fromProxy(status metav1.Status) bool {
	switch status.Code {
	case http.StatusBadGateway:
		return true
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return generic(status)
	default:
		return false
	}
}

// generic says whether the body was no Status: client-go made one up from the code.
func generic(status metav1.Status) bool {
	if status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// IsNotServed says whether a plane answered that it has no such resource, as opposed to no such
// object. On a consumer's plane that is what a claim that the export doesn't make looks like.
func IsNotServed(err error) bool {
	status, ok := answer(err)
	return ok && status.Code == http.StatusNotFound && (generic(status) || status.Details == nil || status.Details.Name == "")
}

// Denial is what krop's user may not do on a plane. On a consumer's plane, that is what a claim looks like
// that isn't accepted, or not for this verb, and a binding that is gone: kcp says no more than "access denied".
type Denial struct {
	Verb     string
	Resource schema.GroupResource
}

// authorizers' words, which have no structured form: `User "krop" cannot create resource "secrets" in API group ""`.
var denied = regexp.MustCompile(`cannot (\S+) resource "([^"/]*)[^"]*" in API group "([^"]*)"`)

// DeniedBy tells an authorizer's 403 from one of admission (a quota, a webhook, a namespace that is
// going), which says nothing about krop's rights.
func DeniedBy(err error) (Denial, bool) {
	status, ok := answer(err)
	if !ok || status.Reason != metav1.StatusReasonForbidden {
		return Denial{}, false
	}
	match := denied.FindStringSubmatch(status.Message)
	if match == nil {
		return Denial{}, false
	}
	return Denial{Verb: match[1], Resource: schema.GroupResource{Group: match[3], Resource: match[2]}}, true
}
