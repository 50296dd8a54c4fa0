package gc

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/validation"
)

func startEtcd(t *testing.T) *embed.Etcd {
	t.Helper()
	config := embed.NewConfig()
	config.Dir = filepath.Join(t.TempDir(), "etcd")
	config.LogLevel = "fatal"
	config.UnsafeNoFsync = true
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.ListenPeerUrls = any, any
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	return etcd
}

func etcdClient(t *testing.T, etcd *embed.Etcd) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + etcd.Clients[0].Addr().String()},
		Logger:    zap.NewNop(), // it warns of every call that ends with the test
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// replica takes part in the leases; crash ends its connection without giving anything back.
type replica struct {
	*Leases
	leave, crash func()
}

func startReplica(t *testing.T, etcd *embed.Etcd, name string) *replica {
	t.Helper()
	client := etcdClient(t, etcd)
	leases := NewLeases(client, "/krop-leases", name)
	leases.ttl = 2 * time.Second // the least that etcd grants
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); leases.Run(ctx) }()
	return &replica{
		Leases: leases,
		leave:  func() { cancel(); <-ended },
		crash:  func() { _ = client.Close() },
	}
}

func (r *replica) count() int {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	n := 0
	for _, owned := range r.owned {
		if owned {
			n++
		}
	}
	return n
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

func TestReplicasDivideTheClusters(t *testing.T) {
	etcd := startEtcd(t)
	a := startReplica(t, etcd, "a")
	eventually(t, "one replica owns all", func() bool { return a.count() == leaseSlices })

	gained := make(chan bool, leaseSlices)
	b := startReplica(t, etcd, "b")
	b.Subscribe(func(owns func(logicalcluster.Name) bool) {
		for i := range 100 {
			if owns(logicalcluster.Name(strconv.Itoa(i))) {
				gained <- true
				return
			}
		}
	})
	eventually(t, "two replicas share", func() bool {
		return a.count() > 0 && b.count() > 0 && a.count()+b.count() == leaseSlices
	})
	for i := range 1000 {
		cluster := logicalcluster.Name(strconv.Itoa(i))
		if a.Owns(cluster) == b.Owns(cluster) {
			t.Fatalf("cluster %s is owned by both or none", cluster)
		}
	}
	select {
	case <-gained:
	case <-time.After(5 * time.Second):
		t.Error("a replica was not told of what it gained")
	}

	b.leave()
	if b.count() != 0 {
		t.Error("a replica that has left still owns something")
	}
	eventually(t, "what was given back has an owner", func() bool { return a.count() == leaseSlices })
}

func TestAReplicaThatDiesLosesItsClusters(t *testing.T) {
	etcd := startEtcd(t)
	a, b := startReplica(t, etcd, "a"), startReplica(t, etcd, "b")
	eventually(t, "two replicas share", func() bool {
		return a.count() > 0 && b.count() > 0 && a.count()+b.count() == leaseSlices
	})
	b.crash()
	eventually(t, "the survivor owns all", func() bool { return a.count() == leaseSlices })
	eventually(t, "the dead one owns nothing", func() bool { return b.count() == 0 })
}

// TestAReplicaEndsWithoutALease is of an etcd that takes connections and says nothing.
func TestAReplicaEndsWithoutALease(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + mute.Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); NewLeases(client, "/krop-leases", "a").Run(ctx) }()
	asking, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	cancel()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("it goes on asking for one")
	}
}

func TestInstallationIsThatOfTheStorage(t *testing.T) {
	etcd := startEtcd(t)
	var ids [3]string
	for i, key := range []string{"/krop-installation", "/krop-installation", "/other-installation"} {
		var err error
		if ids[i], err = Installation(t.Context(), etcdClient(t, etcd), key); err != nil {
			t.Fatal(err)
		}
	}
	if ids[0] == "" || ids[0] != ids[1] || ids[0] == ids[2] || len(validation.IsValidLabelValue(ids[0])) > 0 {
		t.Errorf("identities: %q", ids)
	}
}

func TestStorageRemembersSinceWhenItIs(t *testing.T) {
	etcd := startEtcd(t)
	before := time.Now().Add(-time.Second)
	first, err := StorageSince(t.Context(), etcdClient(t, etcd), "/krop-since")
	if err != nil {
		t.Fatal(err)
	}
	if first.Before(before) || first.After(time.Now()) {
		t.Errorf("storage that was just made is from %s", first)
	}
	again, err := StorageSince(t.Context(), etcdClient(t, etcd), "/krop-since")
	if err != nil {
		t.Fatal(err)
	}
	if !again.Equal(first) {
		t.Errorf("the second time it is from %s, before from %s", again, first)
	}
}
