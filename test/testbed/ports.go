package testbed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// PortCount is how many consecutive ports a test bed takes.
const PortCount = 10

const (
	// freeFrom and freeTo bound where free ports are looked for: above those that services are known by, and
	// below those that Linux gives to outgoing connections, which could take one before a server does.
	freeFrom, freeTo = 20000, 32000
	// freeAttempts is enough to find a gap on a machine with a thousand listeners there.
	freeAttempts = 100
)

// ports are those of the servers. What users talk to comes first.
type ports struct {
	kcp, kcpEtcd, kcpEtcdPeer    int
	host, hostEtcd, hostEtcdPeer int
	krop                         int
	// in production, kcp is the front-proxy, and these are behind it
	shard, virtualWorkspaces, router int
}

// newPorts are PortCount ports from the first.
func newPorts(first int) ports {
	return ports{
		kcp: first, kcpEtcd: first + 1, kcpEtcdPeer: first + 2,
		host: first + 3, hostEtcd: first + 4, hostEtcdPeer: first + 5,
		krop:  first + 6,
		shard: first + 7, virtualWorkspaces: first + 8, router: first + 9,
	}
}

// findPorts checks the ports that are asked for, or finds free ones.
func findPorts(first int) (ports, error) {
	if first != 0 {
		return newPorts(first), allFree(first)
	}
	for range freeAttempts {
		first := freeFrom + rand.IntN(freeTo-freeFrom-PortCount)
		if allFree(first) == nil {
			return newPorts(first), nil
		}
	}
	return ports{}, fmt.Errorf("no %d consecutive free ports between %d and %d", PortCount, freeFrom, freeTo)
}

func allFree(first int) error {
	for port := first; port < first+PortCount; port++ {
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			return fmt.Errorf("ports %d to %d must be free: %w", first, first+PortCount-1, err)
		}
		if err := listener.Close(); err != nil {
			return errors.Join(fmt.Errorf("port %d", port), err)
		}
	}
	return nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// localhost is the URL of a server, by the name that its certificate has.
func localhost(port int) string {
	return "https://" + net.JoinHostPort("localhost", strconv.Itoa(port))
}
