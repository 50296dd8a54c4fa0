package etcd

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/tools/cache"
)

// shared is one real etcd for the tests that don't start their own.
var shared *Backend

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "krop-etcd-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	server, err := Start(context.Background(), EmbeddedConfig{DataDir: dir, UnsafeNoFsync: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	if shared, err = Connect(context.Background(), BackendConfig{Client: server.Client()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	return m.Run()
}

var suiteScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return scheme
}()

var suiteCodec = apitesting.TestCodec(serializer.NewCodecFactory(suiteScheme), examplev1.SchemeGroupVersion)

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("a %T isn't a pod", obj)
	}
	return pod.Labels, fields.Set{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace,
		"spec.nodeName": pod.Spec.NodeName, "spec.restartPolicy": string(pod.Spec.RestartPolicy), "status.phase": string(pod.Status.Phase),
	}, nil
}

// suite is storage for one run of one suite.
type suite struct {
	*suiteStorage
	backend     *Backend
	transformer *switchable
	recorder    *storagetesting.KubernetesRecorder
}

var suites atomic.Int64

func newSuite(t *testing.T, backend *Backend, namespaced, cached bool) *suite {
	t.Helper()
	resource := Resource{
		ExportCluster: logicalcluster.Name(fmt.Sprintf("suite-%d", suites.Add(1))),
		GroupResource: schema.GroupResource{Group: "example.com", Resource: "pods"},
		Namespaced:    namespaced,
	}
	own := *backend // whose lists are recorded
	client := *backend.client
	own.client = &client
	adapter := &suiteStorage{resource: resource}
	var recorder *storagetesting.KubernetesRecorder
	client.Kubernetes, recorder = newSuiteRecorder(backend.client.Kubernetes, own.prefix+adapter.root(suiteCluster))

	options, err := own.RESTOptions(resource, suiteCodec)
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{suiteStorage: adapter, backend: backend, recorder: recorder, transformer: newSwitchable(options.StorageConfig.Transformer)}
	options.StorageConfig.Transformer = s.transformer
	if !cached {
		raw, stop, err := own.raw(options.StorageConfig, options.ResourcePrefix, newPod, newPodList)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		adapter.Interface = raw
		return s
	}
	store, destroy, err := options.Decorator(options.StorageConfig, options.ResourcePrefix, nil, newPod, newPodList, podAttrs, byNode, indexers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	adapter.Interface = store
	waitFor(t, func() bool { return store.ReadinessCheck() == nil })
	return s
}

// The indexes that kube-apiserver has for pods.
var byNode = storage.IndexerFuncs{"spec.nodeName": func(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName }}

var indexers = &cache.Indexers{
	"f:spec.nodeName":      func(obj any) ([]string, error) { return []string{obj.(*example.Pod).Spec.NodeName}, nil },
	"f:metadata.namespace": func(obj any) ([]string, error) { return []string{obj.(*example.Pod).Namespace}, nil },
}

// validate checks what is in etcd under a suite's key.
func (s *suite) validate(ctx context.Context, t *testing.T, key string) {
	stored, err := s.backend.client.KV.Get(ctx, s.backend.prefix+s.key(key, suiteCluster))
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, stored, err)
	}
	data := s.transformer.outer().strip(stored.Kvs[0].Value)
	object, err := runtime.Decode(suiteCodec, data)
	if err != nil {
		t.Fatal(err)
	}
	if pod := object.(*example.Pod); pod.ResourceVersion != "" || logicalcluster.From(pod) != suiteCluster {
		t.Errorf("stored is %v", pod.ObjectMeta)
	}
}

// compact compacts etcd, and waits until the storage has noticed. The cache looks every 15 seconds.
func (s *suite) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	version, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	term, compacted := int64(0), int64(0) // the first try may only learn the term
	for err == nil && compacted != int64(version) {
		term, _, compacted, err = etcd3.Compact(ctx, s.backend.client.Client, term, int64(version))
	}
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.CompactRevision() == int64(version) })
}

func (s *suite) increaseRV(ctx context.Context, t *testing.T) int64 {
	response, err := s.backend.client.KV.Put(ctx, "increaseRV", "ok")
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}

// switchable is a prefix around krop's transformer that suites can exchange.
type switchable struct {
	mutex  sync.Mutex
	prefix *storagetesting.PrefixTransformer
	now    value.Transformer
	inner  value.Transformer
}

const suiteDataPrefix = "test!"

func newSwitchable(inner value.Transformer) *switchable {
	prefix := storagetesting.NewPrefixTransformer([]byte(suiteDataPrefix), false)
	return &switchable{prefix: prefix, now: prefix, inner: inner}
}

func (s *switchable) outer() outer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return outer{s.now}
}

type outer struct{ value.Transformer }

func (outer) strip(data []byte) []byte { return data[len(suiteDataPrefix):] }

func (s *switchable) TransformFromStorage(ctx context.Context, data []byte, key value.Context) ([]byte, bool, error) {
	data, stale, err := s.outer().TransformFromStorage(ctx, data, key)
	if err != nil {
		return nil, false, err
	}
	data, restored, err := s.inner.TransformFromStorage(ctx, data, key)
	return data, stale || restored, err
}

func (s *switchable) TransformToStorage(ctx context.Context, data []byte, key value.Context) ([]byte, error) {
	data, err := s.inner.TransformToStorage(ctx, data, key)
	if err != nil {
		return nil, err
	}
	return s.outer().TransformToStorage(ctx, data, key)
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (s *suite) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	s.transformer.mutex.Lock()
	defer s.transformer.mutex.Unlock()
	before := s.transformer.now
	changed := *s.transformer.prefix
	s.transformer.now = modify(&changed)
	return func() {
		s.transformer.mutex.Lock()
		defer s.transformer.mutex.Unlock()
		s.transformer.now = before
	}
}
