package gc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	mvccpb "go.etcd.io/etcd/api/v3/mvccpb"
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
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(l.ttl/time.Second)))
	if err != nil {
		return fmt.Errorf("asking for a lease: %w", err)
	}
	defer func() { _ = session.Close() }() // gives the slices back; if that fails, the lease runs out
	t := &tenure{leases: l, lease: session.Lease(), members: map[string]bool{}, holders: map[int]string{}}
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

// tenure is what a replica knows of all replicas while it has one lease.
type tenure struct {
	leases  *Leases
	lease   clientv3.LeaseID
	members map[string]bool
	holders map[int]string // slice -> replica
}

// follow enters the replica, and then acts on every change among the replicas.
func (t *tenure) follow(ctx context.Context, lost <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := t.leases.client
	if _, err := client.Put(ctx, t.memberKey(t.leases.name), "", clientv3.WithLease(t.lease)); err != nil {
		return fmt.Errorf("entering: %w", err)
	}
	all, err := client.Get(ctx, t.leases.prefix+"/", clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("reading who else is there: %w", err)
	}
	for _, kv := range all.Kvs {
		t.learn(mvccpb.PUT, kv)
	}
	events := client.Watch(clientv3.WithRequireLeader(ctx), t.leases.prefix+"/", clientv3.WithPrefix(), clientv3.WithRev(all.Header.Revision+1))
	for {
		if err := t.act(ctx); err != nil {
			return err
		}
		select {
		case <-lost:
			return concurrency.ErrSessionExpired
		case <-ctx.Done():
			return ctx.Err()
		case response, ok := <-events:
			if err := response.Err(); err != nil || !ok {
				return fmt.Errorf("watching who else is there: %w", err)
			}
			for _, event := range response.Events {
				t.learn(event.Type, event.Kv)
			}
		}
	}
}

// learn takes up a key of a member or a slice.
func (t *tenure) learn(event mvccpb.Event_EventType, kv *mvccpb.KeyValue) {
	kind, name := path.Split(strings.TrimPrefix(string(kv.Key), t.leases.prefix+"/"))
	put := event == mvccpb.PUT
	switch kind {
	case "members/":
		t.members[name] = put
	case "slices/":
		slice, err := strconv.Atoi(name)
		if err != nil {
			return
		}
		delete(t.holders, slice)
		if put {
			t.holders[slice] = string(kv.Value)
		}
	}
}

// act gives back what is another's, takes what is ours and free, and says what is held.
func (t *tenure) act(ctx context.Context) error {
	var held, back, free []int
	for slice := range leaseSlices {
		holder, isHeld := t.holders[slice]
		ours := t.first(slice) == t.leases.name
		switch {
		case ours && holder == t.leases.name:
			held = append(held, slice)
		case holder == t.leases.name:
			back = append(back, slice)
		case ours && !isHeld:
			free = append(free, slice)
		}
	}
	t.leases.set(held) // before anything is given back
	for _, slice := range back {
		if _, err := t.leases.client.Delete(ctx, t.sliceKey(slice)); err != nil {
			return fmt.Errorf("giving back: %w", err)
		}
	}
	for _, slice := range free {
		key := t.sliceKey(slice)
		// The event that follows says whether it worked.
		_, err := t.leases.client.Txn(ctx).
			If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, t.leases.name, clientv3.WithLease(t.lease))).
			Commit()
		if err != nil {
			return fmt.Errorf("taking: %w", err)
		}
	}
	return nil
}

// first is the member that ranks first for a slice. When members come or go, only their own slices change hands.
func (t *tenure) first(slice int) string {
	var first string
	var highest uint64
	for member, present := range t.members {
		rank := hash(member + "/" + strconv.Itoa(slice))
		if present && (first == "" || rank > highest || rank == highest && member > first) {
			first, highest = member, rank
		}
	}
	return first
}

func (t *tenure) memberKey(name string) string { return t.leases.prefix + "/members/" + name }
func (t *tenure) sliceKey(slice int) string {
	return t.leases.prefix + "/slices/" + strconv.Itoa(slice)
}

func sliceOf(cluster logicalcluster.Name) int { return int(hash(cluster.String()) % leaseSlices) }

// hash is the same in every process, as replicas must agree.
func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:8])
}
