package compose

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

const (
	// maxCauses is how many causes a refusal lists. A list of children that all fail for one reason is
	// one cause already.
	maxCauses = 50
	// retryAfterSeconds is when a client is told to try again what a plane had no answer to.
	retryAfterSeconds = 2
)

// causeUnavailable marks causes that may be gone a moment later.
const causeUnavailable metav1.CauseType = "Unavailable"

// refuse makes one Status of all findings. Its code is that of the finding which keeps the request from
// succeeding longest: what the user has to change in the instance (422) comes before an object that is
// in the way (409), that before what somebody has to allow (403), that before anything else that a child's API
// answers, and last what may be over on the next try (503): telling a client to retry is right only
// if nothing else is wrong.
func refuse(request Request, findings []finding) *apierrors.StatusError {
	worst := verdict{}
	var causes []metav1.StatusCause
	seen := map[string]bool{}
	for _, f := range findings {
		v := judge(request, f)
		if worst.code == 0 || rank(v.code) < rank(worst.code) {
			worst = v
		}
		// Children of one list that fail alike are told once.
		if id := fmt.Sprintf("%v %d %s", nodeID(f), v.code, v.reason); !seen[id] {
			seen[id] = true
			causes = append(causes, causesOf(f, v)...)
		}
	}
	status := refusal(request, worst, causes)
	if slices.ContainsFunc(findings, func(f finding) bool { return plane.TimedOut(f.err) }) {
		status.ErrStatus.Details.RetryAfterSeconds = 0
	}
	return status
}

func refusal(request Request, worst verdict, causes []metav1.StatusCause) *apierrors.StatusError {
	instance := request.Instance
	gvk := instance.GroupVersionKind()
	name := instance.GetName()
	if name == "" {
		name = instance.GetGenerateName()
	}
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: worst.code, Reason: worst.status,
		Message: fmt.Sprintf("%s %q %s: %s", gvk.GroupKind(), name, outcome(worst.code), summary(causes)),
		Details: &metav1.StatusDetails{Group: gvk.Group, Kind: gvk.Kind, Name: name, Causes: shortened(causes)},
	}
	if worst.code == http.StatusServiceUnavailable || worst.code == http.StatusTooManyRequests {
		status.Details.RetryAfterSeconds = retryAfterSeconds
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// rank orders codes by how long they keep a request from succeeding.
func rank(code int32) int {
	switch code {
	case http.StatusUnprocessableEntity:
		return 0
	case http.StatusConflict:
		return 1
	case http.StatusForbidden:
		return 2
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return 4
	default:
		return 3
	}
}

func outcome(code int32) string {
	if code == http.StatusUnprocessableEntity {
		return "is invalid"
	}
	return "can't be composed"
}

// causesOf is a finding by field. Fields of the instance are named where an expression has read them;
// otherwise it is the field of the child, below its node.
func causesOf(f finding, v verdict) []metav1.StatusCause {
	var expression *engine.ExpressionError
	if failures := expressionErrors(f.err); len(failures) > 0 {
		expression = failures[0]
	}
	if expression != nil {
		return []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: fieldOf(f, expression), Message: v.reason}}
	}
	about := describe(f.node, f.key)
	own := slices.DeleteFunc(slices.Clone(v.causes), func(c metav1.StatusCause) bool { return c.Message == "" || c.Field == "" })
	if len(own) == 0 {
		return []metav1.StatusCause{{Type: causeType(v), Field: nodePath(f), Message: about + ": " + v.reason}}
	}
	causes := make([]metav1.StatusCause, 0, len(own))
	for _, cause := range own {
		causes = append(causes, metav1.StatusCause{
			Type: cause.Type, Field: nodePath(f) + "." + cause.Field,
			Message: fmt.Sprintf("%s: %s: %s", about, cause.Field, cause.Message),
		})
	}
	return causes
}

func causeType(v verdict) metav1.CauseType {
	switch v.code {
	case http.StatusServiceUnavailable:
		return causeUnavailable
	case http.StatusConflict:
		return metav1.CauseTypeFieldValueDuplicate
	case http.StatusForbidden:
		return metav1.CauseTypeForbidden
	default:
		return metav1.CauseTypeFieldValueInvalid
	}
}

// fieldOf is the first field of the instance that a failed expression reads; the message names them all.
func fieldOf(f finding, failure *engine.ExpressionError) string {
	switch {
	case len(failure.Fields) > 0:
		return failure.Fields[0]
	case f.node != nil:
		return nodePath(f)
	default:
		return "status"
	}
}

func nodePath(f finding) string { return fmt.Sprintf("resources[%s]", nodeID(f)) }

func nodeID(f finding) string {
	if f.node == nil {
		return ""
	}
	return string(f.node.ID)
}

// summary is the causes in one line, for clients that show nothing else.
func summary(causes []metav1.StatusCause) string {
	listed := make([]string, 0, len(causes))
	for _, cause := range shortened(causes) {
		listed = append(listed, cause.Message)
	}
	if more := len(causes) - len(listed); more > 0 {
		listed = append(listed, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(listed, "; ")
}

func shortened(causes []metav1.StatusCause) []metav1.StatusCause {
	return causes[:min(len(causes), maxCauses)]
}
