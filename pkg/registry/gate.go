package registry

import (
	"context"
	"sync"
)

// Gate lets creates in until it is closed. Closing waits for those that are in, so that what is counted
// afterwards stays so: no instance slips in while its blueprint is being withdrawn. Updates and deletes
// of what is stored don't pass it: they add nothing.
//
// The zero value is open. Safe for concurrent use.
type Gate struct {
	mutex  sync.Mutex
	closed bool
	in     int
	empty  chan struct{} // closed when the last create leaves; nil while nobody waits for that
}

// Enter lets a create in, which must call leave, once, when it has stored what it stores. It never
// waits: while the gate is closed it fails with a 503 that is worth a retry, since a deletion may be
// refused yet.
func (g *Gate) Enter() (leave func(), err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed {
		return nil, TryAgain("no instance can be created now: its blueprint is being deleted")
	}
	g.in++
	return g.leave, nil
}

func (g *Gate) leave() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.in--
	if g.in == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// Close keeps creates out from now on, and returns when the last one that was in has left, or with an
// error when ctx ends first. The gate is closed in either case.
func (g *Gate) Close(ctx context.Context) error {
	empty := g.close()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Gate) close() (empty <-chan struct{}) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.closed = true
	if g.in == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	return g.empty
}

// Open lets creates in again.
func (g *Gate) Open() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.closed = false
}
