package gc

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// tenure is what a replica knows of all replicas while it has one lease.
type tenure struct {
	leases  *Leases
	lease   clientv3.LeaseID
	members map[string]bool
	holders [leaseSlices]holding
}

// holding is who has a slice, as of a revision of etcd.
type holding struct {
	replica  string // empty if nobody
	revision int64
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
		if err != nil || slice < 0 || slice >= leaseSlices {
			return
		}
		holder := ""
		if put {
			holder = string(kv.Value)
		}
		t.note(slice, holding{holder, kv.ModRevision})
	}
}

// note takes what is newer than what is known: a write of our own is known before its event comes.
func (t *tenure) note(slice int, now holding) {
	if now.revision >= t.holders[slice].revision {
		t.holders[slice] = now
	}
}

// act says which slices are held, gives back what has become another's, and takes what is ours and free.
func (t *tenure) act(ctx context.Context) error {
	var back, free []int
	for slice, holding := range t.holders {
		ours := t.first(slice) == t.leases.name
		switch {
		case !ours && holding.replica == t.leases.name:
			back = append(back, slice)
		case ours && holding.replica == "":
			free = append(free, slice)
		}
	}
	t.announce() // before anything is given back
	for _, slice := range back {
		if err := t.giveBack(ctx, slice); err != nil {
			return fmt.Errorf("giving back: %w", err)
		}
	}
	for _, slice := range free {
		if err := t.take(ctx, slice); err != nil {
			return fmt.Errorf("taking: %w", err)
		}
	}
	t.announce()
	return nil
}

// announce says which slices are held and are to be kept.
func (t *tenure) announce() {
	var held []int
	for slice, holding := range t.holders {
		if holding.replica == t.leases.name && t.first(slice) == t.leases.name {
			held = append(held, slice)
		}
	}
	t.leases.set(held)
}

// giveBack deletes the slice's key, if it still is this replica's.
func (t *tenure) giveBack(ctx context.Context, slice int) error {
	key := t.sliceKey(slice)
	response, err := t.leases.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(key), "=", t.leases.name)).
		Then(clientv3.OpDelete(key)).
		Commit()
	if err == nil && response.Succeeded {
		t.note(slice, holding{"", response.Header.Revision})
	}
	return err
}

// take writes the slice's key, if there is none. If there is one, its end will be an event.
func (t *tenure) take(ctx context.Context, slice int) error {
	key := t.sliceKey(slice)
	response, err := t.leases.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, t.leases.name, clientv3.WithLease(t.lease))).
		Commit()
	if err == nil && response.Succeeded {
		t.note(slice, holding{t.leases.name, response.Header.Revision})
	}
	return err
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
