package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/test/testbed"
)

// leaseSlices is into how many parts replicas divide the loop.
const leaseSlices = 64

// replica is one of several krops.
type replica struct {
	*testbed.Server
	address string
}

// replicas are two krops on one etcd, which has what the one krop had, and kcp is led to one of them.
type replicas struct {
	*front
	etcd          *clientv3.Client
	first, second replica
}

// startReplicas puts two krops in the place of the one. Afterwards that runs as before.
func startReplicas(t *testing.T) *replicas {
	t.Helper()
	must(t, bed.Krop.Stop())
	t.Cleanup(func() { must(t, bed.Krop.Start(context.Background())) }) // the test's context has ended by then
	servers, client := startEtcd(t, filepath.Join(bed.Dir(), "data", "krop", "etcd"))
	r := &replicas{front: startFront(t), etcd: client}
	t.Cleanup(r.close)
	r.first, r.second = newReplica(t, "krop-first", servers), newReplica(t, "krop-second", servers)
	for _, each := range []replica{r.first, r.second} {
		r.lead(each.address)
		must(t, each.Start(t.Context()))
	}
	return r
}

func newReplica(t *testing.T, name, servers string) replica {
	t.Helper()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	server, err := bed.AnotherKrop(name, number, "--etcd-servers="+servers)
	must(t, err)
	t.Cleanup(server.Kill)
	return replica{server, address}
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	return listener.Addr().String()
}

// startEtcd serves krop's data to whoever asks, until the test ends.
func startEtcd(t *testing.T, dir string) (servers string, client *clientv3.Client) {
	t.Helper()
	clients, peers := url.URL{Scheme: "http", Host: freeAddress(t)}, url.URL{Scheme: "http", Host: freeAddress(t)}
	config := embed.NewConfig()
	config.Name, config.Dir = "krop", dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel, config.UnsafeNoFsync = "error", true
	etcd, err := embed.StartEtcd(config)
	must(t, err)
	t.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-t.Context().Done():
		t.Fatal("etcd is not ready")
	}
	client, err = clientv3.New(clientv3.Config{Endpoints: []string{clients.String()}})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return clients.String(), client
}

// leads has kcp talk to one of them from now on.
func (r *replicas) leads(consumer actor, to replica) {
	consumer.t.Helper()
	r.lead(to.address)
	eventually(consumer.t, "requests get there", func() error {
		_, err := consumer.in(bundles).List(consumer.t.Context(), metav1.ListOptions{})
		return err
	})
}

// shares is how many parts of the loop each replica has.
func (r *replicas) shares(ctx context.Context) (map[string]int, error) {
	all, err := r.etcd.Get(ctx, "/krop/leases/slices/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	shares := map[string]int{}
	for _, kv := range all.Kvs {
		shares[string(kv.Value)]++
	}
	return shares, nil
}

// divided says what is wrong unless so many replicas have all parts among them.
func (r *replicas) divided(ctx context.Context, among int) error {
	shares, err := r.shares(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, share := range shares {
		total += share
	}
	if len(shares) != among || total != leaseSlices {
		return fmt.Errorf("parts by replica: %v", shares)
	}
	return nil
}

// twins are published and edited while there are two krops.
var twins = authored("twins")

// twin is their blueprint, with a child of the name's suffix.
func twin(suffix string) *unstructured.Unstructured {
	blueprint := childless("twins", "Twin", map[string]any{"id": "of", "template": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "${schema.metadata.name}-" + suffix},
		"data":     map[string]any{"of": "${schema.metadata.name}"},
	}})
	_ = unstructured.SetNestedField(blueprint.Object, authoringGroup, "spec", "schema", "group")
	return blueprint
}

func newTwin(name string) *unstructured.Unstructured {
	return instance("Twin", name, map[string]any{"size": int64(1)})
}

// TestTwoKropsOnOneEtcd: what is written through one is served by the other, blueprints too; they divide the loop, and when
// one is killed the other has all of it.
func TestTwoKropsOnOneEtcd(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "replicated")
	both := startReplicas(t)
	eventually(t, "they divide the loop", func() error { return both.divided(t.Context(), 2) })

	both.leads(consumer, both.first)
	_, err := provider.Resource(blueprints).Create(t.Context(), twin("before"), metav1.CreateOptions{})
	must(t, err)
	must(t, bindOfferings(t.Context(), consumer.user, "twins"))
	consumer.makes(bundles, bundle("one", map[string]any{"text": "first"}))
	consumer.makes(twins, newTwin("one"))

	both.leads(consumer, both.second)
	must(t, consumer.has(bundles, "one", "first", "spec", "text"))
	must(t, consumer.has(twins, "one", int64(1), "spec", "size"))
	consumer.patch(bundles, "one", `{"spec":{"text":"second"}}`)
	must(t, consumer.has(configMaps, "one", "second", "data", "text"))
	consumer.makes(twins, newTwin("two"))
	edited, err := json.Marshal(twin("after").Object)
	must(t, err)
	_, err = provider.Resource(blueprints).Patch(t.Context(), "twins", mergePatch, edited, metav1.PatchOptions{})
	must(t, err)

	both.leads(consumer, both.first)
	must(t, consumer.has(bundles, "one", "second", "spec", "text"))
	for _, name := range []string{"one", "two"} {
		eventually(t, "what was made through both has what the edited blueprint says", func() error {
			return consumer.has(configMaps, name+"-after", name, "data", "of")
		})
	}
	both.first.Kill()
	both.leads(consumer, both.second)
	// Nobody may look after it at the moment: whoever takes over has to find out.
	consumer.delete(configMaps, "one")
	consumer.delete(configMaps, "one-after")
	eventually(t, "the other one has all of the loop", func() error { return both.divided(t.Context(), 1) })
	eventually(t, "it repairs what happened meanwhile", func() error {
		return errors.Join(consumer.has(configMaps, "one", "second", "data", "text"), consumer.has(configMaps, "one-after", "one", "data", "of"))
	})
	consumer.delete(twins, "two")
	eventually(t, "it takes down what the first one made", func() error {
		return errors.Join(consumer.missing(twins, "two"), consumer.missing(configMaps, "two-after"))
	})
	must(t, both.first.Start(t.Context()))
	eventually(t, "they divide the loop again", func() error { return both.divided(t.Context(), 2) })
}
