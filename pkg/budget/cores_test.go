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
	used := time.Since(began)
	leave()
	again, err := share.Enter(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began) - used; waited < used {
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
	if err := ResumeSeat(ctx); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := share.Enter(stopped, "b"); err == nil {
		t.Error("the place that was taken again is free")
	}
	LeaveSeat(ctx)
	LeaveSeat(context.Background()) // nobody has one
	if err := ResumeSeat(context.Background()); err != nil {
		t.Error(err)
	}
	idle, never := WithSeat(t.Context(), share, "c")
	if err := ResumeSeat(idle); err != nil || never.free != nil {
		t.Errorf("one that had no place has taken one (%v)", err)
	}
}

func TestASeatThatIsTakenTwiceIsOnePlace(t *testing.T) {
	share := NewShare(2)
	ctx, seat := WithSeat(t.Context(), share, "a")
	for range 2 {
		if err := seat.Take(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if share.turns.taken != 1 {
		t.Errorf("%d places are taken", share.turns.taken)
	}
	seat.Leave()
	enter(t, share.turns, "b")()
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
