package registry

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestLockIsHeldByOneAtATime(t *testing.T) {
	locks, key := &Locks{}, v1alpha1.InstanceKey{Name: "one"}
	const writers, rounds = 8, 100
	counter := 0
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range rounds {
				unlock, err := locks.Lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				counter++
				unlock()
			}
		})
	}
	group.Wait()
	if counter != writers*rounds {
		t.Errorf("%d writes counted, want %d: two held the lock at once", counter, writers*rounds)
	}
	if len(locks.held) != 0 {
		t.Errorf("%d locks are remembered although nobody holds one", len(locks.held))
	}
}

func TestLocksOfTwoInstancesAreIndependent(t *testing.T) {
	locks := &Locks{}
	unlock, err := locks.Lock(t.Context(), v1alpha1.InstanceKey{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	another, err := locks.Lock(t.Context(), v1alpha1.InstanceKey{Name: "two"})
	if err != nil {
		t.Fatal(err)
	}
	another()
}

func TestWaitingForALockEndsWithItsContext(t *testing.T) {
	locks, key := &Locks{}, v1alpha1.InstanceKey{Name: "one"}
	unlock, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locks.Lock(ctx, key); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
	unlock()
	if len(locks.held) != 0 {
		t.Error("the lock is remembered although nobody holds it")
	}
}

func TestGateWaitsForThoseInsideAndKeepsOthersOut(t *testing.T) {
	gate := &Gate{}
	leave, err := gate.Enter()
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := gate.Close(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("closed while somebody was inside: %v", err)
	}
	if _, err := gate.Enter(); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("%v, want 503 while those inside are waited for", err)
	} else if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds == 0 {
		t.Error("the client isn't told when to try again")
	}
	leave()
	if err := gate.Close(t.Context()); err != nil {
		t.Error(err)
	}
	gate.Open()
	if leave, err := gate.Enter(); err != nil {
		t.Errorf("a gate that was opened again: %v", err)
	} else {
		leave()
	}
}

func TestHeldExportIsForgottenOnceServed(t *testing.T) {
	catalog, key := &Catalog{}, v1alpha1.ExportKey{Cluster: "provider1", Name: "widgets.example.org"}
	catalog.Hold(key, "widgets")
	if _, served := catalog.Lookup(key); served || !catalog.Held(key) {
		t.Error("a held export must be known and not served")
	}
	catalog.Await(key)
	if catalog.Awaited() != 1 {
		t.Error("not awaited")
	}
	catalog.Set(&Served{Export: key})
	if _, served := catalog.Lookup(key); !served || catalog.Held(key) || catalog.Awaited() != 0 {
		t.Error("a served export is held no more")
	}
	catalog.Remove(key)
	if _, served := catalog.Lookup(key); served || catalog.Held(key) {
		t.Error("a removed export is still known")
	}
}
