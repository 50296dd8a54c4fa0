package apiserver

import (
	"net"
	"net/http"
	"sync"
)

// peerLimits bounds how many requests of each peer run at one time. Forwarded requests need it: they may
// last as long as a watch, and the queues let such requests pass. Safe for concurrent use.
type peerLimits struct {
	most int

	mu      sync.Mutex
	running map[string]int // peers that have any
}

// enter lets a request in, which must call leave when it has ended; or ok is false.
func (p *peerLimits) enter(peer string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[peer] >= p.most {
		return nil, false
	}
	p.running[peer]++
	return func() { p.leave(peer) }, true
}

func (p *peerLimits) leave(peer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[peer]--; p.running[peer] == 0 {
		delete(p.running, peer)
	}
}

// peerOf names who is limited: the user, or for a token, which only kcp can read, the machine it comes from.
func peerOf(who *caller, r *http.Request) string {
	if who.trust != trustBearer {
		return "user " + who.GetName()
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}
