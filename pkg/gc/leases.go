package gc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"k8s.io/klog/v2"
)

const (
	// leaseSlices is into how many parts consumer clusters are divided: enough that a dozen replicas
	// have about as many each, few enough that a change of hands is a handful of writes. All replicas
	// must agree on it.
	leaseSlices = 64

	// leaseTTL is how long a replica that died keeps its slices. etcd's client renews at a third of it.
	leaseTTL = 10 * time.Second

	// leaseRetry is the pause before a lost lease is asked for anew.
	leaseRetry = time.Second
)

// Leases is the Ownership of several replicas that share an etcd. Each replica enters itself under
// a lease, and takes those slices that its name ranks first for among the names entered. A slice is a
// key under the same lease: it has one holder, and the next one waits until it is gone.
//
// A replica whose lease has ended stops believing in its slices when its client notices; until then
// two may look after one instance, which resourceVersions make harmless.
type Leases struct {
	client *clientv3.Client
	prefix string
	name   string
	ttl    time.Duration

	mutex  sync.RWMutex
	owned  [leaseSlices]bool
	gained []func(owns func(logicalcluster.Name) bool)
}

var _ Ownership = &Leases{}

// NewLeases makes the leases of a replica. prefix is where they are kept in etcd, apart from
// everything else; name is the replica's own, which no other one has.
func NewLeases(client *clientv3.Client, prefix, name string) *Leases {
	return &Leases{client: client, prefix: strings.TrimSuffix(prefix, "/"), name: name, ttl: leaseTTL}
}

// Owns implements Ownership.
func (l *Leases) Owns(cluster logicalcluster.Name) bool {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	return l.owned[sliceOf(cluster)]
}

// Subscribe implements Ownership.
func (l *Leases) Subscribe(gained func(owns func(logicalcluster.Name) bool)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.gained = append(l.gained, gained)
}

// Run takes part until ctx ends, and gives everything back then.
func (l *Leases) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.takePart(ctx)
		l.set(nil)
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "lease of this replica has ended; asking for another", "replica", l.name)
		select {
		case <-ctx.Done():
		case <-time.After(leaseRetry):
		}
	}
}

// takePart holds one lease until it ends.
func (l *Leases) takePart(ctx context.Context) error {
	seconds := int(l.ttl / time.Second)
	// The session would ask for it under the client's context, which outlives ctx.
	lease, err := l.client.Grant(ctx, int64(seconds))
	if err != nil {
		return fmt.Errorf("asking for a lease: %w", err)
	}
	session, err := concurrency.NewSession(l.client, concurrency.WithLease(lease.ID), concurrency.WithTTL(seconds))
	if err != nil {
		return fmt.Errorf("keeping a lease: %w", err)
	}
	defer func() { _ = session.Close() }() // gives the slices back; if that fails, the lease runs out
	t := &tenure{leases: l, lease: session.Lease(), members: map[string]bool{}}
	return t.follow(ctx, session.Done())
}

// set says which slices are owned from now on, and tells of those that are new.
func (l *Leases) set(owned []int) {
	var now, added [leaseSlices]bool
	gain := false
	l.mutex.Lock()
	for _, slice := range owned {
		now[slice] = true
		added[slice] = !l.owned[slice]
		gain = gain || added[slice]
	}
	l.owned = now
	listeners := slices.Clone(l.gained)
	l.mutex.Unlock()
	if !gain {
		return
	}
	for _, tell := range listeners {
		tell(func(cluster logicalcluster.Name) bool { return added[sliceOf(cluster)] })
	}
}

func sliceOf(cluster logicalcluster.Name) int { return int(hash(cluster.String()) % leaseSlices) }

// hash is the same in every process, as replicas must agree.
func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:8])
}
