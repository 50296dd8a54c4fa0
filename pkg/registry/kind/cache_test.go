package kind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// traffic counts what goes to etcd for the keys of one group.
type traffic struct {
	clientv3.KV
	clientv3.Watcher
	group          string
	lists, watches atomic.Int64
}

func (c *traffic) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if isRange := len(clientv3.OpGet(key, options...).RangeBytes()) > 0; isRange && strings.Contains(key, c.group) {
		c.lists.Add(1)
	}
	return c.KV.Get(ctx, key, options...)
}

func (c *traffic) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	if strings.Contains(key, c.group) {
		c.watches.Add(1)
	}
	return c.Watcher.Watch(ctx, key, options...)
}

func (c *traffic) Close() error { return c.Watcher.Close() }

// count puts a counter between the backend and etcd.
func count(t *testing.T, group string) *traffic {
	t.Helper()
	client := backend.Client()
	counter := &traffic{KV: client.KV, Watcher: client.Watcher, group: group}
	client.KV, client.Watcher = counter, counter
	return counter
}

func TestAThousandWatchersAreOneWatchOfEtcd(t *testing.T) {
	const watchers, clusters = 1000, 10
	group := newGroup()
	counter := count(t, group)
	store := newStore(t, newKind(t, definition(t, group)))

	var open []watch.Interface
	for i := range watchers {
		ctx := in(t.Context(), clusterNumber(i%clusters), namespace)
		watcher, err := store.Main.Watch(ctx, listOptions("0"))
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		open = append(open, watcher)
	}
	for i := range clusters {
		create(t, in(t.Context(), clusterNumber(i), namespace), store, decoded(store.Kind, "same"))
	}
	for i, watcher := range open {
		select {
		case event := <-watcher.ResultChan():
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("watcher %d saw a %T", i, event.Object)
			}
			object.SetName("changed") // by one watcher, is of no concern to the others
			if cluster := object.GetAnnotations()[clusterAnnotation]; event.Type != watch.Added || cluster != clusterNumber(i%clusters).String() {
				t.Fatalf("watcher %d saw %s of %s", i, event.Type, cluster)
			}
		case <-time.After(patience):
			t.Fatalf("watcher %d saw nothing", i)
		}
	}
	if list := listAll(t, in(t.Context(), etcd.Wildcard, ""), store, "0"); list.Items[0].GetName() != "same" {
		t.Errorf("a watcher has changed what is cached: %v", list.Items[0])
	}
	if got := counter.watches.Load(); got != 1 {
		t.Errorf("%d watches of etcd", got)
	}
}

func TestListsAreServedFromTheCache(t *testing.T) {
	const objects = 25
	group := newGroup()
	counter := count(t, group)
	store := newStore(t, newKind(t, definition(t, group)))
	ctx := in(t.Context(), one, namespace)
	for i := range objects {
		create(t, ctx, store, decoded(store.Kind, fmt.Sprintf("w%02d", i)))
	}
	counter.lists.Store(0)

	// A consistent list sees the last write at once, although it comes from the cache.
	for i := range objects {
		if err := deleteNow(ctx, store, fmt.Sprintf("w%02d", i)); err != nil {
			t.Fatal(err)
		}
		if list := listAll(t, ctx, store, ""); len(list.Items) != objects-1-i {
			t.Fatalf("after %d deletes %d objects are listed", i+1, len(list.Items))
		}
	}
	listAll(t, ctx, store, "0")
	if got := counter.lists.Load(); got != 0 {
		t.Errorf("%d lists of etcd", got)
	}
}

func TestListsContinueWhereTheyEndedAndAsOfThen(t *testing.T) {
	store, s, client := served(t)
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("w%d", i)
		want = append(want, name)
		for _, cluster := range []dynamic.ResourceInterface{client, s.client(t, two, nil).Namespace(namespace)} {
			if _, err := cluster.Create(t.Context(), widget(store.Kind, name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	var token, version string
	for range 10 {
		page, err := client.List(t.Context(), metav1.ListOptions{Limit: 3, Continue: token})
		if err != nil {
			t.Fatal(err)
		}
		if version == "" {
			version = page.GetResourceVersion()
			if err := client.Delete(t.Context(), "w6", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if page.GetResourceVersion() != version {
			t.Errorf("a page as of %s, not %s", page.GetResourceVersion(), version)
		}
		got = append(got, names(page)...)
		if token = page.GetContinue(); token == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v", got)
	}
}

func TestGetsAreAsFreshAsAsked(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// From the cache, once it is at least that fresh.
	object, err := client.Get(t.Context(), "a", metav1.GetOptions{ResourceVersion: created.GetResourceVersion()})
	if err != nil || object.GetUID() != created.GetUID() {
		t.Errorf("%v %v", object, err)
	}
	// Not through the client, which would wait and try again.
	_, err = store.Main.Get(in(t.Context(), one, namespace), "a", &metav1.GetOptions{ResourceVersion: "999999999"})
	if !apierrors.IsTimeout(err) {
		t.Errorf("a resourceVersion of the future: %v", err)
	}
}

func TestAnObjectStoredWithoutItsClusterBlocksNothing(t *testing.T) {
	group := newGroup()
	k := newKind(t, definition(t, group))
	first := newStore(t, k)
	ctx := in(t.Context(), one, namespace)
	create(t, ctx, first, decoded(k, "a"))
	first.Destroy()

	key := etcd.DefaultPrefix + "/" + provider.String() + "/" + group + "/widgets/one/" + namespace + "/a"
	stored, err := backend.Client().KV.Get(t.Context(), key)
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatal(stored, err)
	}
	for name, annotation := range map[string]string{"none": `"other":"x"`, "another cluster's": `"kcp.io/cluster":"two"`} {
		broken := strings.Replace(string(stored.Kvs[0].Value), `"kcp.io/cluster":"one"`, annotation, 1)
		if _, err := backend.Client().KV.Put(t.Context(), key, broken); err != nil {
			t.Fatal(err)
		}
		restarted := newStore(t, k) // waits for the cache to be ready
		for how, version := range reads {
			list := listAll(t, ctx, restarted, version)
			if len(list.Items) != 1 || list.Items[0].GetAnnotations()[clusterAnnotation] != "one" {
				t.Errorf("annotation %s, %s: %v", name, how, list.Items)
			}
			if others := listAll(t, in(t.Context(), two, namespace), restarted, version); len(others.Items) != 0 {
				t.Errorf("annotation %s, %s: another cluster sees %v", name, how, others.Items)
			}
		}
		// A write that changes nothing puts it right for good.
		update(t, ctx, restarted, get(t, ctx, restarted, "a"))
		repaired, err := backend.Client().KV.Get(t.Context(), key)
		if err != nil || !strings.Contains(string(repaired.Kvs[0].Value), `"kcp.io/cluster":"one"`) {
			t.Errorf("annotation %s: stored is %s, %v", name, repaired.Kvs, err)
		}
	}
}
