package budget

import (
	"context"
	"errors"
	"testing"
)

func TestTurnsGoRoundTheKeys(t *testing.T) {
	turns := NewTurns(1, 1, 10)
	leave := enter(t, turns, "first")
	order := make(chan string)
	waiting := func(key string, before int) {
		go func() {
			leave, err := turns.Enter(context.Background(), key)
			if err != nil {
				order <- err.Error()
				return
			}
			order <- key
			leave()
		}()
		await(t, turns, before+1)
	}
	waiting("many", 0)
	waiting("many", 1)
	waiting("many", 2)
	waiting("one", 3)
	leave()
	for i, want := range []string{"many", "one", "many", "many"} {
		if got := <-order; got != want {
			t.Errorf("place %d went to %s, want %s", i, got, want)
		}
	}
}

// await returns when so many wait.
func await(t *testing.T, turns *Turns, want int) {
	t.Helper()
	for {
		turns.mutex.Lock()
		waiting := 0
		for _, entry := range turns.keys {
			waiting += len(entry.waiting)
		}
		turns.mutex.Unlock()
		if waiting == want {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d wait, want %d", waiting, want)
		}
	}
}

func TestAKeyGetsNoMoreThanItsShare(t *testing.T) {
	turns := NewTurns(4, 2, 0)
	first, second := enter(t, turns, "a"), enter(t, turns, "a")
	if _, err := turns.Enter(t.Context(), "a"); !errors.Is(err, ErrFull) {
		t.Errorf("a third place of one key: %v, want %v", err, ErrFull)
	}
	enter(t, turns, "b")()
	first()
	second()
	if len(turns.keys) != 0 || turns.taken != 0 {
		t.Errorf("%d keys and %d places are left behind", len(turns.keys), turns.taken)
	}
}

func TestWhoMayNotWaitLeavesNothingBehind(t *testing.T) {
	turns := NewTurns(1, 1, 0)
	leave := enter(t, turns, "a")
	if _, err := turns.Enter(t.Context(), "b"); !errors.Is(err, ErrFull) {
		t.Errorf("a second place: %v, want %v", err, ErrFull)
	}
	leave()
	if len(turns.keys) != 0 {
		t.Errorf("%d keys are left behind", len(turns.keys))
	}
}

func TestGivingUpLeavesNothingBehind(t *testing.T) {
	turns := NewTurns(2, 1, 1)
	leave := enter(t, turns, "a")
	other := enter(t, turns, "b")
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, err := turns.Enter(ctx, "c")
		gaveUp <- err
	}()
	await(t, turns, 1)
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	leave()
	other()
	// The key's share still holds, although its earlier place in line is empty.
	again := enter(t, turns, "c")
	done := make(chan func())
	go func() {
		leave, err := turns.Enter(t.Context(), "c")
		if err != nil {
			t.Error(err)
		}
		done <- leave
	}()
	await(t, turns, 1)
	enter(t, turns, "d")()
	select {
	case <-done:
		t.Error("a second place was given to a key whose share is one")
	default:
	}
	again()
	(<-done)()
	if len(turns.keys) != 0 || turns.taken != 0 {
		t.Errorf("%d keys and %d places are left behind", len(turns.keys), turns.taken)
	}
}

func enter(t *testing.T, turns *Turns, key string) (leave func()) {
	t.Helper()
	leave, err := turns.Enter(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}
