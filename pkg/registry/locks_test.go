package registry

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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
	leave, ok := gate.Enter()
	if !ok {
		t.Fatal("an open gate lets nobody in")
	}
	closed := make(chan struct{})
	go func() {
		gate.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Fatal("closed while somebody was inside")
	case <-time.After(20 * time.Millisecond): // Close has nothing to signal that it waits
	}
	leave()
	<-closed
	if _, ok := gate.Enter(); ok {
		t.Error("a closed gate lets somebody in")
	}
	gate.Open()
	if leave, ok := gate.Enter(); !ok {
		t.Error("a gate that was opened again lets nobody in")
	} else {
		leave()
	}
}

func TestHeldExportIsForgottenOnceServed(t *testing.T) {
	catalog, key := &Catalog{}, v1alpha1.ExportKey{Cluster: "provider1", Name: "widgets.example.org"}
	catalog.Hold(key)
	if _, served := catalog.Lookup(key); served || !catalog.Held(key) {
		t.Error("a held export must be known and not served")
	}
	catalog.Set(&Served{Export: key})
	if _, served := catalog.Lookup(key); !served || catalog.Held(key) {
		t.Error("a served export is held no more")
	}
	catalog.Remove(key)
	if _, served := catalog.Lookup(key); served || catalog.Held(key) {
		t.Error("a removed export is still known")
	}
}
