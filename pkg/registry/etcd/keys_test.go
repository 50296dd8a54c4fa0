package etcd

import (
	"context"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

var databases = Resource{
	ExportCluster: "provider",
	GroupResource: schema.GroupResource{Group: "example.com", Resource: "databases"},
	Namespaced:    true,
}

var tenants = Resource{
	ExportCluster: "provider",
	GroupResource: schema.GroupResource{Group: "example.com", Resource: "tenants"},
}

func at(cluster logicalcluster.Name, namespace string) context.Context {
	return request.WithNamespace(WithCluster(context.Background(), cluster), namespace)
}

func TestKeysNameExportKindClusterNamespaceAndName(t *testing.T) {
	for want, test := range map[string]struct {
		resource Resource
		ctx      context.Context
	}{
		"/provider/example.com/databases/one/default/a": {databases, at("one", "default")},
		"/provider/example.com/tenants/one/a":           {tenants, at("one", "")},
	} {
		key, err := test.resource.Key(test.ctx, "a")
		if err != nil || key != want {
			t.Errorf("%s, %v", key, err)
		}
		object := &example.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: request.NamespaceValue(test.ctx),
			Annotations: map[string]string{logicalcluster.AnnotationKey: "one"},
		}}
		if filed, err := test.resource.KeyOf(object); err != nil || filed != key {
			t.Errorf("the cache files it under %s, %v", filed, err)
		}
	}
}

func TestKeysRefuseWhatIsNoSegment(t *testing.T) {
	for _, cluster := range []logicalcluster.Name{
		"", "*", "..", ".", "a/b", "a%2fb", "One", "-one", "one-", "o ne", "system:admin", "system:..", "a",
		logicalcluster.Name(strings.Repeat("a", 64)), "one\n", "ü1",
	} {
		if key, err := databases.Key(at(cluster, "default"), "a"); !apierrors.IsBadRequest(err) {
			t.Errorf("cluster %q: %s, %v", cluster, key, err)
		}
	}
	for _, segment := range []string{"", "..", ".", "a/b", "a%b"} {
		if key, err := databases.Key(at("one", segment), "a"); !apierrors.IsBadRequest(err) {
			t.Errorf("namespace %q: %s, %v", segment, key, err)
		}
		if key, err := databases.Key(at("one", "default"), segment); !apierrors.IsBadRequest(err) {
			t.Errorf("name %q: %s, %v", segment, key, err)
		}
	}
	if key, err := databases.Key(context.Background(), "a"); !apierrors.IsBadRequest(err) {
		t.Errorf("no cluster: %s, %v", key, err)
	}
	if key, err := databases.KeyOf(&example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}); err == nil {
		t.Errorf("an object without a cluster is filed under %s", key)
	}
}

func TestRootsEndSoThatNeighboursStayOutside(t *testing.T) {
	for want, test := range map[string]struct {
		resource Resource
		ctx      context.Context
	}{
		"/provider/example.com/databases/one/default/": {databases, at("one", "default")},
		"/provider/example.com/databases/one/":         {databases, at("one", "")},
		"/provider/example.com/tenants/one/":           {tenants, at("one", "")},
		"/provider/example.com/databases/":             {databases, at(Wildcard, "default")},
		"/provider/example.com/tenants/":               {tenants, context.Background()},
	} {
		if got := test.resource.Root(test.ctx); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

func TestResourcesThatMakeNoKeysAreRefused(t *testing.T) {
	for _, resource := range []Resource{
		{},
		{ExportCluster: "..", GroupResource: databases.GroupResource},
		{ExportCluster: Wildcard, GroupResource: databases.GroupResource},
		{ExportCluster: "provider", GroupResource: schema.GroupResource{Group: "..", Resource: "databases"}},
		{ExportCluster: "provider", GroupResource: schema.GroupResource{Group: "example.com", Resource: "a/b"}},
		{ExportCluster: "provider", GroupResource: schema.GroupResource{Resource: "databases"}},
	} {
		if _, err := shared.RESTOptions(resource, suiteCodec); err == nil {
			t.Errorf("%v was accepted", resource)
		}
	}
}

func TestReadsOutsideOfAClusterAreRefusedByTheStorage(t *testing.T) {
	s := newSuite(t, shared, true, true)
	store := s.suiteStorage.Interface // without the adapter, which names a cluster
	everything := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	for name, ctx := range map[string]context.Context{
		"none": context.Background(), "dots": at("..", ""), "a namespace with a slash": at("one", "a/b"),
		"dots as a namespace of all clusters": at(Wildcard, ".."),
	} {
		if err := store.GetList(ctx, s.resource.Root(ctx), everything, &example.PodList{}); err == nil {
			t.Errorf("%s: listed", name)
		}
		if watcher, err := store.Watch(ctx, s.resource.Root(ctx), everything); err == nil {
			watcher.Stop()
			t.Errorf("%s: watched", name)
		}
	}
}
