package blueprint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// explained adds to what the blueprint's schema refuses what would have been refused next, so that an author learns of
// everything at once.
func (w *write) explained(ctx context.Context, object *unstructured.Unstructured, refusal error) error {
	if w.examined || object == nil || !apierrors.IsInvalid(refusal) {
		return refusal
	}
	blueprint, err := decode(object)
	if err != nil || blueprint.Spec.Schema == nil {
		return refusal
	}
	_, err = w.examine(ctx, object, nil, blueprint)
	if err == nil || !isRefusal(err) {
		return refusal
	}
	return invalidBy(blueprint.Name, withMore(slices.Compact(causesOf(refusal)), causesOf(err)))
}

// together is the one answer to all that was found, which may be nothing (nil). If something is wrong with the
// blueprint itself, the answer is Invalid and has everything else that is refused among its causes; what could not be
// found out then goes unsaid. Otherwise it is the first that was found.
func together(name string, found []error) error {
	found = slices.DeleteFunc(found, func(err error) bool { return err == nil })
	if len(found) == 0 {
		return nil
	}
	if len(found) == 1 || !slices.ContainsFunc(found, apierrors.IsInvalid) {
		return found[0]
	}
	var causes []metav1.StatusCause
	for _, err := range found {
		if isRefusal(err) {
			causes = withMore(causes, causesOf(err))
		}
	}
	return invalidBy(name, causes)
}

// withMore adds causes. Where a field has been refused there is nothing to add: what is found there next is
// the same, or follows from that.
func withMore(causes, more []metav1.StatusCause) []metav1.StatusCause {
	named := slices.Clone(causes)
	for _, cause := range more {
		if cause.Field == "" || !slices.ContainsFunc(named, func(other metav1.StatusCause) bool { return other.Field == cause.Field }) {
			causes = append(causes, cause)
		}
	}
	return causes
}

// invalidBy is an Invalid Status with these causes.
func invalidBy(name string, causes []metav1.StatusCause) error {
	messages := make([]string, 0, len(causes))
	for _, cause := range causes {
		messages = append(messages, strings.TrimPrefix(cause.Field+": "+cause.Message, ": "))
	}
	refusal := invalid(name, nil)
	refusal.ErrStatus.Message += fmt.Sprintf(": [%s]", strings.Join(messages, ", "))
	refusal.ErrStatus.Details.Causes = causes
	return refusal
}

// causesOf is what a Status has for causes, or itself as the only one.
func causesOf(err error) []metav1.StatusCause {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return []metav1.StatusCause{{Message: err.Error()}}
	}
	status := known.Status()
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return []metav1.StatusCause{{Type: metav1.CauseType(status.Reason), Message: status.Message}}
	}
	return slices.Clone(status.Details.Causes)
}

// isRefusal says that the request is what is wrong, and not that something could not be found out or done now.
func isRefusal(err error) bool {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return false
	}
	code := known.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
