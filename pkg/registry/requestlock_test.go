package registry

import (
	"context"
	"testing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// TestWhoWaitsForALockHasNoCore has one request hold the lock and want the only core, and another one wait for the lock.
func TestWhoWaitsForALockHasNoCore(t *testing.T) {
	cores, locks, key := budget.NewShare(1), &Locks{}, v1alpha1.InstanceKey{Name: "one"}
	unlock, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, seat := budget.WithSeat(t.Context(), cores, "waits")
	if err := seat.Take(ctx); err != nil {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() {
		unlock, err := LockForRequest(ctx, ctx, locks, key, "")
		if err == nil {
			unlock()
		}
		locked <- err
	}()
	free, err := cores.Enter(t.Context(), "has the lock")
	if err != nil {
		t.Fatalf("who has the lock gets no core: %v", err)
	}
	free()
	unlock()
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cores.Enter(ended, "another"); err == nil {
		t.Error("the place was not taken again")
	}
	seat.Leave()
}
