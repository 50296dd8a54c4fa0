package budget

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Cores is the turns of work that keeps a core busy for more than a few milliseconds: evaluating at length, compiling,
// and whatever is done to a large body before it is composed. It never waits for anything, so that a few of them would
// delay each step of every other request. So one core is always left for everybody else; of the others, this
// work gets half, since there is more on the machine than this process, and what is busy is the machine.
//
// It is the process's, as its cores are.
var Cores = NewShare(max(1, runtime.GOMAXPROCS(0)-1))

// workPatience is how long work waits for one turn: time for some hundred others, while a request has time left.
const workPatience = 5 * time.Second

// Share gives places for work, each of which rests as long as it was used. Safe for concurrent use.
type Share struct{ turns *Turns }

// NewShare has so many places.
func NewShare(places int) *Share {
	return &Share{turns: NewTurns(places, places, Work.Default)}
}

// Enter waits for a place, which the tenant has to leave once. It fails with *Over of Work.
func (s *Share) Enter(ctx context.Context, tenant string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, workPatience)
	defer cancel()
	free, err := s.turns.Enter(ctx, tenant)
	if err != nil {
		return nil, Limits{}.Exceeded(Work, fmt.Sprintf("this one has waited for %s or too many do", workPatience))
	}
	began := time.Now()
	return func() { time.AfterFunc(time.Since(began), free) }, nil
}

// Seat is a place that a request may have while it works on its body. It must not wait for anything meanwhile but for
// storage: whoever has what it waits for may wait for the place.
type Seat struct {
	share  *Share
	tenant string

	mutex sync.Mutex
	used  bool
	free  func() // nil: it has none
}

type seatKey struct{}

// WithSeat gives the request a seat that is empty.
func WithSeat(ctx context.Context, share *Share, tenant string) (context.Context, *Seat) {
	seat := &Seat{share: share, tenant: tenant}
	return context.WithValue(ctx, seatKey{}, seat), seat
}

// Take waits for a place, unless it has one. One goroutine at a time may call it.
func (s *Seat) Take(ctx context.Context) error {
	if s.taken() {
		return nil
	}
	free, err := s.share.Enter(ctx, s.tenant)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.used, s.free = true, free
	return nil
}

// Leave gives the place up, if it has one.
func (s *Seat) Leave() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.free != nil {
		s.free()
		s.free = nil
	}
}

// LeaveSeat gives up the place that the request may have: from here on it waits for others.
func LeaveSeat(ctx context.Context) {
	if seat, ok := ctx.Value(seatKey{}).(*Seat); ok {
		seat.Leave()
	}
}

// ResumeSeat takes a place for a request again that had one.
func ResumeSeat(ctx context.Context) error {
	if seat, ok := ctx.Value(seatKey{}).(*Seat); ok && seat.wasUsed() {
		return seat.Take(ctx)
	}
	return nil
}

func (s *Seat) taken() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.free != nil
}

func (s *Seat) wasUsed() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.used
}
