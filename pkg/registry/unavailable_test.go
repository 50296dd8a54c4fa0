package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry"
)

func TestUnavailableTellsNoAddressAndPassesAStatusOn(t *testing.T) {
	cause := fmt.Errorf("%w: %w", plane.ErrNotReachable, errors.New(`Get "https://10.0.0.1:6443/apis": dial tcp`))
	err := registry.Unavailable("kinds can't be read", cause)
	if !apierrors.IsServiceUnavailable(err) || strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("got %v", err)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != registry.RetryAfterSeconds {
		t.Errorf("asks for a retry after %d seconds: %t", seconds, ok)
	}
	err = registry.Unavailable("kinds can't be read", fmt.Errorf("%w: %w", plane.ErrNotReachable, context.DeadlineExceeded))
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok || !apierrors.IsServiceUnavailable(err) {
		t.Errorf("what has taken all of its time is to be tried again after %d seconds: %v", seconds, err)
	}
	said := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	err = registry.Unavailable("kinds can't be read", fmt.Errorf("at https://10.0.0.1:6443: %w", said))
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("got %v, want what the server said", err)
	}
}
