package budget

import (
	"context"
	"testing"
	"time"
)

func TestAPlaceRestsAsLongAsItWasUsed(t *testing.T) {
	share := NewShare(1)
	leave, err := share.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for time.Since(began) < 20*time.Millisecond { // is work
	}
	leave()
	used := time.Since(began)
	again, err := share.Enter(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began) - used; waited < used/2 {
		t.Errorf("used for %s, and given away again after %s", used, waited)
	}
	again()
}

func TestASeatIsLeftOnce(t *testing.T) {
	share := NewShare(1)
	ctx, seat := WithSeat(t.Context(), share, "a")
	if err := seat.Take(ctx); err != nil {
		t.Fatal(err)
	}
	LeaveSeat(ctx)
	seat.Leave()
	leave, err := share.Enter(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	LeaveSeat(context.Background()) // nobody has one
}

func TestWorkThatCanNotWaitNamesItsBound(t *testing.T) {
	share := NewShare(1)
	leave, err := share.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := share.Enter(ctx, "b"); !IsBusy(err) {
		t.Errorf("got %v, want that it is busy", err)
	}
}
