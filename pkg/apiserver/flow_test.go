package apiserver_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// slowStorage holds every get until it is let go, and counts per cluster what was let in.
type slowStorage struct {
	mainStorage
	entered chan string
	release chan struct{}
}

func (s *slowStorage) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	cluster, _ := etcd.ClusterFrom(ctx)
	s.entered <- cluster.String()
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return s.mainStorage.Get(ctx, name, options)
}

// Delete is held as gets are, before anything is looked for.
func (s *slowStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	cluster, _ := etcd.ClusterFrom(ctx)
	s.entered <- cluster.String()
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return s.mainStorage.Delete(ctx, name, validate, options)
}

// startSlow lets two reads and one write run at one time.
func startSlow(t *testing.T) (*bed, *slowStorage) {
	t.Helper()
	b := start(t, func(o *apiserver.Options) { o.Limits[budget.Reads], o.Limits[budget.Writes] = 2, 1 })
	slow := &slowStorage{mainStorage: mainStorage{b.store.Main}, entered: make(chan string, 1000), release: make(chan struct{})}
	served := servedAs(export, b.store)
	served.Storage = map[string]rest.Storage{gvr.Resource: slow}
	b.catalog.Set(served)
	return b, slow
}

// library is an HTTP client as the shard, with many requests on few connections.
func (b *bed) library(t *testing.T) *http.Client {
	t.Helper()
	who := b.client(t, pki.Client, shard)
	pair, err := tls.LoadX509KeyPair(who.CertFile, who.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool(b.pki.CAFile(pki.Serving)), Certificates: []tls.Certificate{pair}},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (b *bed) widgetURL(cluster string) string {
	return "https://localhost:" + b.port() + base + cluster + apis + "/namespaces/default/widgets/one"
}

// TestAFloodingClusterDoesNotKeepOthersOut has a cluster ask for much more than there are places, and another one for one
// thing, after all of that. Turns are given by the time that was used: each request takes as long as the flood came
// before the other.
func TestAFloodingClusterDoesNotKeepOthersOut(t *testing.T) {
	b, slow := startSlow(t)
	client := b.library(t)
	// The flood waits in a hand of six queues, each of which may have a turn or two before the other cluster has its own.
	const places, flood, turns = 2, 60, 20
	began := time.Now()
	var calls sync.WaitGroup
	ask := func(cluster string) {
		calls.Go(func() {
			if response, err := client.Get(b.widgetURL(cluster)); err == nil {
				response.Body.Close()
			}
		})
	}
	for range flood {
		ask(consumer.String())
	}
	expect(t, slow.entered, consumer.String(), consumer.String()) // all places are taken
	awaitQueued(t, flood-places)
	ask(otherConsumer.String())
	awaitQueued(t, flood-places+1)
	each := time.Since(began)
	defer calls.Wait()
	defer close(slow.release)
	for range turns {
		time.Sleep(each / places)
		slow.release <- struct{}{}
		if next(t, slow.entered) == otherConsumer.String() {
			return
		}
	}
	t.Errorf("%d of the flood have had their turn, and the other cluster waits", turns)
}

// awaitQueued returns when so many reads wait for their turn.
func awaitQueued(t *testing.T, want int) {
	t.Helper()
	queued := -1
	for deadline := time.Now().Add(patience); queued != want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d reads wait, want %d", queued, want)
		}
		queued = queuedReads(t)
	}
}

func queuedReads(t *testing.T) int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "apiserver_flowcontrol_current_inqueue_requests" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "priority_level" && label.GetValue() == "reads" {
					sum += metric.GetGauge().GetValue()
				}
			}
		}
	}
	return int(sum)
}

// patience is enough for a flood on a machine that is busy with other things.
const patience = time.Minute

func expect(t *testing.T, entered <-chan string, want ...string) {
	t.Helper()
	for _, cluster := range want {
		if got := next(t, entered); got != cluster {
			t.Fatalf("%s was let in, want %s", got, cluster)
		}
	}
}

// next is the cluster that is let in next.
func next(t *testing.T, entered <-chan string) string {
	t.Helper()
	select {
	case cluster := <-entered:
		return cluster
	case <-time.After(patience):
		t.Fatal("nobody is let in")
		return ""
	}
}

func TestTooManyRequestsAreRefusedWithRetryAfter(t *testing.T) {
	b, slow := startSlow(t)
	client := b.library(t)
	var refused, late atomic.Int32
	var calls sync.WaitGroup
	const more = 400 // than a cluster can have waiting
	for range more {
		calls.Go(func() {
			response, err := client.Get(b.widgetURL(consumer.String()))
			if err != nil {
				return
			}
			defer response.Body.Close()
			if response.StatusCode == http.StatusTooManyRequests {
				refused.Add(1)
				if response.Header.Get("Retry-After") == "" {
					late.Add(1)
				}
			}
		})
	}
	expect(t, slow.entered, consumer.String(), consumer.String())
	deadline := time.Now().Add(patience)
	for refused.Load() == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if refused.Load() == 0 || late.Load() > 0 {
		t.Errorf("%d requests were refused, %d of them without Retry-After", refused.Load(), late.Load())
	}
	for _, path := range []string{"/livez", "/readyz"} { // not behind the flood
		if got := b.get(t, nil, path); got.code != http.StatusOK {
			t.Errorf("%s: %d", path, got.code)
		}
	}
	if got := b.get(t, b.client(t, pki.Client, shard), base+"*"+apis); got.code != http.StatusOK {
		t.Errorf("discovery: %d", got.code)
	}
	close(slow.release)
	calls.Wait()
}

// TestAWriteThatWaitsForItsOwnChildEnds is the write of a parent in the only seat, and that of its child.
func TestAWriteThatWaitsForItsOwnChildEnds(t *testing.T) {
	b, slow := startSlow(t)
	client := b.library(t)
	write := func() int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, b.widgetURL(consumer.String()), nil)
		if err != nil {
			return 0
		}
		response, err := client.Do(request)
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	parent := make(chan int, 1)
	go func() { parent <- write() }()
	expect(t, slow.entered, consumer.String())
	began := time.Now()
	if code := write(); code != http.StatusTooManyRequests {
		t.Errorf("the child's write: %d", code)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it waited %s, longer than the parent's call has time for", took)
	}
	close(slow.release)
	if code := <-parent; code != http.StatusNotFound {
		t.Errorf("the parent's write, let go: %d", code)
	}
}

// TestDocumentsTakeTurns asks for what is said about a kind in one cluster: to know that the cluster is bound,
// and that a user may ask, can take requests to kcp.
func TestDocumentsTakeTurns(t *testing.T) {
	b, slow := startSlow(t)
	client := b.library(t)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if response, err := client.Get(b.widgetURL(consumer.String())); err == nil {
				response.Body.Close()
			}
		})
	}
	expect(t, slow.entered, consumer.String(), consumer.String()) // both seats are taken
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for _, path := range []string{apis, "/openapi/v3"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost:"+b.port()+base+consumer.String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			t.Errorf("%s is answered out of turn: %d", path, response.StatusCode)
		}
	}
	close(slow.release)
	calls.Wait()
}
