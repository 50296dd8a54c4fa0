package budget

import (
	"context"
	"errors"
	"sync"
)

// Turns gives out a number of places. Who has to wait is let in by turns: of each key one after the other, so that
// one with many waiting delays the others by one place at most. Safe for concurrent use.
type Turns struct {
	places, perKey, waiting int

	mutex sync.Mutex
	taken int
	keys  map[string]*queue
	order []*queue // of those who wait and may be let in; whose turn it is comes first
}

// queue is what one key has and waits for. It is forgotten when both are nothing.
type queue struct {
	key     string
	taken   int
	waiting []chan struct{} // each is closed when its turn comes
	listed  bool            // in order
}

// ErrFull says that too many of the key wait already.
var ErrFull = errors.New("too many wait already")

// NewTurns has so many places, of which one key gets perKey at most, and of each key so many may wait.
func NewTurns(places, perKey, waiting int) *Turns {
	return &Turns{places: places, perKey: perKey, waiting: waiting, keys: map[string]*queue{}}
}

// Enter takes a place, and waits for it if need be. It fails with ErrFull, or with the error of ctx. Otherwise leave
// has to be called once.
func (t *Turns) Enter(ctx context.Context, key string) (leave func(), err error) {
	entry, turn, err := t.join(key)
	if err != nil {
		return nil, err
	}
	if turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			if t.giveUp(entry, turn) {
				return nil, ctx.Err()
			}
			// its turn has come at the same moment
		}
	}
	return func() { t.leave(entry) }, nil
}

// join takes a place if there is one, or else gets in line: then turn is not nil.
func (t *Turns) join(key string) (entry *queue, turn chan struct{}, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	entry = t.keys[key]
	if entry == nil {
		entry = &queue{key: key}
		t.keys[key] = entry
	}
	if t.taken < t.places && entry.taken < t.perKey && len(entry.waiting) == 0 {
		t.taken++
		entry.taken++
		return entry, nil, nil
	}
	if len(entry.waiting) >= t.waiting {
		t.forget(entry) // it may be new
		return nil, nil, ErrFull
	}
	turn = make(chan struct{})
	entry.waiting = append(entry.waiting, turn)
	t.list(entry)
	return entry, turn, nil
}

// list puts a key into the order, if one of it waits that may be let in.
func (t *Turns) list(entry *queue) {
	if !entry.listed && len(entry.waiting) > 0 && entry.taken < t.perKey {
		entry.listed = true
		t.order = append(t.order, entry)
	}
}

func (t *Turns) leave(entry *queue) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.taken--
	entry.taken--
	t.list(entry)
	t.admit()
	t.forget(entry)
}

// admit lets in who is next, as long as there are places.
func (t *Turns) admit() {
	for t.taken < t.places && len(t.order) > 0 {
		next := t.order[0]
		t.order, next.listed = t.order[1:], false
		if len(next.waiting) == 0 || next.taken >= t.perKey {
			continue // they have given up
		}
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
		t.taken++
		next.taken++
		t.list(next)
	}
}

// giveUp is false if the turn has come.
func (t *Turns) giveUp(entry *queue, turn chan struct{}) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for i, waiting := range entry.waiting {
		if waiting == turn {
			entry.waiting = append(entry.waiting[:i:i], entry.waiting[i+1:]...)
			t.forget(entry)
			return true
		}
	}
	return false
}

func (t *Turns) forget(entry *queue) {
	if entry.taken == 0 && len(entry.waiting) == 0 && t.keys[entry.key] == entry {
		delete(t.keys, entry.key)
	}
}
