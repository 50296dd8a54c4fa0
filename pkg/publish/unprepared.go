package publish

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/manifests"
)

// UnpreparedError says that a workspace lacks what publishing needs: a right of krop's user, or an object
// of the provider's manifest. It is a Status with code 403 that names what is missing.
type UnpreparedError struct {
	// Cluster is the workspace.
	Cluster logicalcluster.Path
	// Missing is what it lacks, in words.
	Missing string
	// Resource that could not be used.
	Resource schema.GroupResource
	// Cause is kcp's answer.
	Cause error
}

// Error names what is missing, where, and what to apply.
func (e *UnpreparedError) Error() string {
	return fmt.Sprintf("the workspace %s is not prepared for krop: %s; apply %s there: %v", e.Cluster, e.Missing, manifests.ProviderFolder, e.Cause)
}

// Unwrap gives kcp's answer.
func (e *UnpreparedError) Unwrap() error { return e.Cause }

// Status is what a client sees.
func (e *UnpreparedError) Status() metav1.Status {
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: e.Error(),
		Details: &metav1.StatusDetails{Group: e.Resource.Group, Kind: e.Resource.Resource},
	}
}

// explained says what a workspace lacks, if that is why kcp refused. Any other error is passed on as it is.
func explained(err error, cluster logicalcluster.Path, verb string, resource schema.GroupResource) error {
	switch {
	case err == nil:
		return nil
	case isRBACRefusal(err):
		return &UnpreparedError{Cluster: cluster, Missing: fmt.Sprintf("krop's user may not %s %s", verb, resource), Resource: resource, Cause: err}
	case isUnknownResource(err):
		return &UnpreparedError{Cluster: cluster, Missing: fmt.Sprintf("it has no %s", resource), Resource: resource, Cause: err}
	default:
		return err
	}
}

// isRBACRefusal tells missing rights from a refusal by admission. Both are 403; only authorization's
// message says what the user cannot do.
func isRBACRefusal(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, " cannot ")
}

// isUnknownResource tells a kind that isn't served from an object that isn't there: only the latter names it.
func isUnknownResource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}
