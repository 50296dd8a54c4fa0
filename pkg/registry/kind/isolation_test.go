package kind

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// Clusters whose ids are prefixes of one another, and namespaces too.
var neighbours = []logicalcluster.Name{"one", "one-more", "on", "two"}

// settle stores a widget of the same name in all neighbours and in two namespaces each, coloured by both.
func settle(t *testing.T, s *server, name string) {
	t.Helper()
	for _, cluster := range neighbours {
		for _, namespace := range []string{"default", "default-2"} {
			object := widget(s.store.Kind, name, with(colour(cluster, namespace), "spec", "color"))
			object.SetNamespace(namespace)
			if _, err := s.client(t, cluster, nil).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.awaitCached(t, name, 2*len(neighbours))
}

// awaitCached waits until a list that may be stale has as many objects of the name.
func (s *server) awaitCached(t *testing.T, name string, count int) {
	t.Helper()
	all := s.client(t, etcd.Wildcard, nil)
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := all.List(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=" + name})
		return err == nil && len(list.Items) >= count, err
	})
	if err != nil {
		t.Fatalf("the cache doesn't get to %d objects: %v", count, err)
	}
}

func colour(cluster logicalcluster.Name, namespace string) string {
	return cluster.String() + "/" + namespace
}

func colours(items []unstructured.Unstructured) (colours []string) {
	for _, item := range items {
		colour, _, _ := unstructured.NestedString(item.Object, "spec", "color")
		colours = append(colours, colour)
	}
	slices.Sort(colours)
	return colours
}

// reads are the ways to read: from etcd, from the cache as it is, and from the cache once it is fresh.
var reads = map[string]string{"consistent": "", "any": "0"}

func TestSameNamedObjectsAreIsolatedInGetAndList(t *testing.T) {
	_, s, _ := served(t)
	settle(t, s, "same")
	for how, version := range reads {
		for _, cluster := range neighbours {
			client := s.client(t, cluster, nil)
			object, err := client.Namespace("default").Get(t.Context(), "same", metav1.GetOptions{ResourceVersion: version})
			if err != nil || valueAt(t, object, "spec", "color") != colour(cluster, "default") {
				t.Errorf("%s get in %s: %v %v", how, cluster, object, err)
			}
			list, err := client.Namespace("default").List(t.Context(), metav1.ListOptions{ResourceVersion: version})
			if err != nil || !slices.Equal(colours(list.Items), []string{colour(cluster, "default")}) {
				t.Errorf("%s list of a namespace in %s: %v %v", how, cluster, colours(list.Items), err)
			}
			list, err = client.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
			if want := []string{colour(cluster, "default"), colour(cluster, "default-2")}; err != nil || !slices.Equal(colours(list.Items), want) {
				t.Errorf("%s list of %s: %v %v", how, cluster, colours(list.Items), err)
			}
			list, err = client.List(t.Context(), metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=same,metadata.namespace=default"})
			if err != nil || !slices.Equal(colours(list.Items), []string{colour(cluster, "default")}) {
				t.Errorf("%s list of one object in %s: %v %v", how, cluster, colours(list.Items), err)
			}
		}
	}
}

func TestWildcardSeesAllClustersAndFiltersByNamespace(t *testing.T) {
	_, s, _ := served(t)
	settle(t, s, "same")
	client := s.client(t, etcd.Wildcard, nil)
	for how, version := range reads {
		list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil || len(list.Items) != 2*len(neighbours) {
			t.Errorf("%s: %v %v", how, colours(list.Items), err)
		}
		list, err = client.Namespace("default").List(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil || len(list.Items) != len(neighbours) {
			t.Errorf("%s, one namespace: %v %v", how, colours(list.Items), err)
		}
		for _, item := range list.Items {
			if item.GetNamespace() != "default" {
				t.Errorf("%s, one namespace: %s", how, item.GetNamespace())
			}
		}
		list, err = client.List(t.Context(), metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=same,metadata.namespace=default-2"})
		if err != nil || len(list.Items) != len(neighbours) {
			t.Errorf("%s, one name: %v %v", how, colours(list.Items), err)
		}
	}
}

func TestWildcardIsForListAndWatchOnly(t *testing.T) {
	store, s, _ := served(t)
	settle(t, s, "same")
	client := s.client(t, etcd.Wildcard, nil).Namespace("default")
	ctx := t.Context()
	attempts := map[string]func() error{
		"get": func() error { _, err := client.Get(ctx, "same", metav1.GetOptions{}); return err },
		"create": func() error {
			_, err := client.Create(ctx, widget(store.Kind, "new"), metav1.CreateOptions{})
			return err
		},
		"delete": func() error { return client.Delete(ctx, "same", metav1.DeleteOptions{}) },
		"deletecollection": func() error {
			return client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"apply": func() error {
			_, err := client.Apply(ctx, "same", widget(store.Kind, "same"), metav1.ApplyOptions{FieldManager: "x"})
			return err
		},
	}
	for verb, attempt := range attempts {
		if err := attempt(); !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for _, cluster := range neighbours {
		if list, err := s.client(t, cluster, nil).List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
			t.Errorf("%s has %v, %v", cluster, colours(list.Items), err)
		}
	}
}

func TestReadsWithoutAClusterAreRefused(t *testing.T) {
	store, s, _ := served(t)
	settle(t, s, "same")
	if list, err := store.Main.List(context.Background(), nil); err == nil {
		t.Errorf("listed %v", list)
	}
	for _, cluster := range []string{"%2e%2e", "One", "a%2Fb", "%25", "-one"} {
		status, _, body := s.fetch(t, logicalcluster.Name(cluster), "/widgets", "application/json")
		if status != 400 && status != 404 {
			t.Errorf("cluster %s: %d %s", cluster, status, body)
		}
	}
}

// event is what a watch said: how, and of which cluster and namespace.
func nextEvent(t *testing.T, watcher watch.Interface) string {
	t.Helper()
	select {
	case event, open := <-watcher.ResultChan():
		object, ok := event.Object.(*unstructured.Unstructured)
		if !open || !ok {
			t.Fatalf("open %v, %v", open, event)
		}
		return string(event.Type) + " " + valueAt(t, object, "spec", "color").(string)
	case <-time.After(patience):
		t.Fatal("no event")
		return ""
	}
}

func TestWatchesSeeTheirClusterOnly(t *testing.T) {
	_, s, _ := served(t)
	start := func(cluster logicalcluster.Name, namespace string) watch.Interface {
		watcher, err := s.client(t, cluster, nil).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watcher.Stop)
		return watcher
	}
	watchers := map[logicalcluster.Name]watch.Interface{}
	for _, cluster := range neighbours {
		watchers[cluster] = start(cluster, "default")
	}
	everything, everywhere := start(etcd.Wildcard, ""), start(etcd.Wildcard, "default")

	settle(t, s, "same")
	for _, cluster := range neighbours {
		if err := s.client(t, cluster, nil).Namespace("default").Delete(t.Context(), "same", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, cluster := range neighbours {
		for _, kind := range []string{"ADDED ", "DELETED "} {
			if got := nextEvent(t, watchers[cluster]); got != kind+colour(cluster, "default") {
				t.Errorf("the watch of %s saw %s", cluster, got)
			}
		}
	}
	for _, cluster := range neighbours {
		for _, namespace := range []string{"default", "default-2"} {
			if got := nextEvent(t, everything); got != "ADDED "+colour(cluster, namespace) {
				t.Errorf("the watch of all saw %s", got)
			}
		}
		if got := nextEvent(t, everywhere); got != "ADDED "+colour(cluster, "default") {
			t.Errorf("the watch of a namespace in all clusters saw %s", got)
		}
	}
	for _, cluster := range neighbours {
		if got := nextEvent(t, everywhere); got != "DELETED "+colour(cluster, "default") {
			t.Errorf("the watch of a namespace in all clusters saw %s", got)
		}
	}
}

// A continue token is the client's to forge: it must not lead out of the cluster.
func TestForgedContinueTokensStayInTheirCluster(t *testing.T) {
	_, s, _ := served(t)
	settle(t, s, "same")
	settle(t, s, "same2")
	client := s.client(t, "one", nil)
	page, err := client.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || page.GetContinue() == "" {
		t.Fatal(page, err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(page.GetContinue())
	if err != nil {
		t.Fatal(err)
	}
	token := map[string]any{}
	if err := json.Unmarshal(raw, &token); err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{"../two/default/same", "/../two/default/same", "../", "two/default/same", "\x00", "//two"} {
		token["start"] = start
		forged, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.List(t.Context(), metav1.ListOptions{Limit: 100, Continue: base64.RawURLEncoding.EncodeToString(forged)})
		if err != nil {
			continue
		}
		for _, colour := range colours(list.Items) {
			if !strings.HasPrefix(colour, "one/") {
				t.Errorf("a token that starts at %q led to %s", start, colour)
			}
		}
	}
}
