package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// LockForRequest takes the lock of what a request writes, waiting until waiting ends, and then fails with a timeout of
// that message. It gives up the place that the request may have at a core meanwhile, since whoever has the lock may wait
// for that, and takes one again afterwards, under ctx.
func LockForRequest(ctx, waiting context.Context, locks *Locks, key v1alpha1.InstanceKey, message string) (unlock func(), err error) {
	budget.LeaveSeat(ctx)
	unlock, err = locks.Lock(waiting, key)
	if err != nil {
		return nil, apierrors.NewTimeoutError(message, RetryAfterSeconds)
	}
	if err := budget.ResumeSeat(ctx); err != nil {
		unlock()
		return nil, Refused(err)
	}
	return unlock, nil
}
