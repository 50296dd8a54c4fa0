package registry

import "sync"

// Gate lets writes in until it is closed. Closing waits for those that are in, so that what is counted
// afterwards stays so: no instance slips in while its blueprint is being withdrawn.
//
// The zero value is open. Safe for concurrent use.
type Gate struct {
	mutex  sync.RWMutex
	closed bool
}

// Enter lets a write in, which must call leave when it has stored what it stores; or ok is false.
func (g *Gate) Enter() (leave func(), ok bool) {
	g.mutex.RLock()
	if g.closed {
		g.mutex.RUnlock()
		return nil, false
	}
	return g.mutex.RUnlock, true
}

// Close keeps writes out, and returns when the last one that was in has left.
func (g *Gate) Close() { g.set(true) }

// Open lets writes in again.
func (g *Gate) Open() { g.set(false) }

func (g *Gate) set(closed bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.closed = closed
}
