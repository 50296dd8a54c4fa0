package integration

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"go.opendefense.cloud/krop/test/testbed"
)

// front is at krop's address in its place, and leads to one of its replicas, as a load balancer does.
type front struct {
	listener net.Listener

	mu    sync.Mutex
	to    string
	conns map[net.Conn]struct{}
}

// startFront takes krop's address, which must be free.
func startFront(t *testing.T) *front {
	t.Helper()
	shard, err := bed.Kubectl(testbed.Admin).Run(t.Context(), "get", "shards", "root", "-o", "jsonpath={.spec.virtualWorkspaceURL}")
	must(t, err)
	address, err := url.Parse(shard.Stdout)
	must(t, err)
	f := &front{conns: map[net.Conn]struct{}{}}
	f.listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", address.Port()))
	must(t, err)
	go f.serve()
	return f
}

func (f *front) close() {
	_ = f.listener.Close()
	f.lead("")
}

// lead cuts what leads to another replica.
func (f *front) lead(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.conns = map[net.Conn]struct{}{}
}

func (f *front) serve() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		go f.forward(conn)
	}
}

func (f *front) forward(conn net.Conn) {
	replica, ok := f.join(conn)
	if !ok {
		_ = conn.Close()
		return
	}
	go copyAndClose(replica, conn)
	copyAndClose(conn, replica)
}

// join connects to the replica, and remembers both ends, under the lock: what is led elsewhere is cut whole.
func (f *front) join(conn net.Conn) (replica net.Conn, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	replica, err := net.Dial("tcp", f.to)
	if err != nil {
		return nil, false
	}
	f.conns[conn], f.conns[replica] = struct{}{}, struct{}{}
	return replica, true
}

func copyAndClose(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}
