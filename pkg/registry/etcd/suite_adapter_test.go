package etcd

import (
	"context"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

const (
	suiteCluster   = logicalcluster.Name("one")
	suiteNeighbour = logicalcluster.Name("one-more") // whose keys follow, and share a prefix
	// suitePrefix is where upstream's suites keep their pods, and suiteRegistry what they call it in etcd.
	suitePrefix, suiteRegistry = "/pods/", "/registry/pods/"
)

// suiteStorage lets upstream's suites, which know keys of one cluster and expect back exactly what they
// stored, run on storage that has many clusters: it maps their keys into one cluster and says so in the
// objects, and takes that out again. Whatever a suite creates is first created in a neighbouring cluster
// too, under the same name: no suite may notice.
type suiteStorage struct {
	storage.Interface
	resource Resource
}

var _ storage.Interface = &suiteStorage{}

func (s *suiteStorage) root(cluster logicalcluster.Name) string {
	return s.resource.Prefix() + cluster.String() + "/"
}

// key maps a suite's key into a cluster. What isn't a key of pods stays as it is, to be refused.
func (s *suiteStorage) key(key string, cluster logicalcluster.Name) string {
	if key+"/" == suitePrefix {
		return strings.TrimSuffix(s.resource.Prefix(), "/")
	}
	if rest, ok := strings.CutPrefix(key, suitePrefix); ok {
		if !s.resource.Namespaced {
			rest = strings.TrimPrefix(rest, "/") // what an empty namespace leaves
		}
		return s.root(cluster) + rest
	}
	return key
}

func in(ctx context.Context) context.Context { return WithCluster(ctx, suiteCluster) }

func (s *suiteStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	neighbours := stamped(obj, suiteNeighbour)
	_ = s.Interface.Create(in(ctx), s.key(key, suiteNeighbour), neighbours, &example.Pod{}, ttl) // may be there, or invalid
	mine := stamped(obj, suiteCluster)
	if err := s.Interface.Create(in(ctx), s.key(key, suiteCluster), mine, out, ttl); err != nil {
		return err
	}
	if out != nil {
		clean(out)
	}
	return nil
}

func (s *suiteStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	err := s.Interface.Get(in(ctx), s.key(key, suiteCluster), opts, out)
	cleanCopy(out)
	return err
}

func (s *suiteStorage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, suggestion runtime.Object, opts storage.DeleteOptions,
) error {
	if suggestion != nil {
		suggestion = stamped(suggestion, suiteCluster)
	}
	validateClean := func(ctx context.Context, obj runtime.Object) error { return validate(ctx, cleaned(obj)) }
	err := s.Interface.Delete(in(ctx), s.key(key, suiteCluster), out, preconditions, validateClean, suggestion, opts)
	cleanCopy(out)
	return err
}

func (s *suiteStorage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, suggestion runtime.Object,
) error {
	if suggestion != nil {
		suggestion = stamped(suggestion, suiteCluster)
	}
	updateClean := func(obj runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		updated, ttl, err := update(cleaned(obj), res)
		if updated != nil {
			updated = stamped(updated, suiteCluster)
		}
		return updated, ttl, err
	}
	err := s.Interface.GuaranteedUpdate(in(ctx), s.key(key, suiteCluster), out, ignoreNotFound, preconditions, updateClean, suggestion)
	cleanCopy(out)
	return err
}

func (s *suiteStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	err := s.Interface.GetList(in(ctx), s.key(key, suiteCluster), opts, list)
	if pods, ok := list.(*example.PodList); ok {
		for i := range pods.Items {
			cleanCopy(&pods.Items[i])
		}
	}
	return err
}

func (s *suiteStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	watcher, err := s.Interface.Watch(in(ctx), s.key(key, suiteCluster), opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(watcher, func(event watch.Event) (watch.Event, bool) {
		if cached, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = cached.GetObject()
		}
		event.Object = cleaned(event.Object)
		return event, true
	}), nil
}

func stamped(obj runtime.Object, cluster logicalcluster.Name) runtime.Object {
	obj = obj.DeepCopyObject()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj
	}
	annotations := accessor.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[logicalcluster.AnnotationKey] = cluster.String()
	accessor.SetAnnotations(annotations)
	return obj
}

func cleaned(obj runtime.Object) runtime.Object {
	obj = obj.DeepCopyObject()
	clean(obj)
	return obj
}

// cleanCopy is clean for objects whose annotations are shared with the cache.
func cleanCopy(obj runtime.Object) {
	if pod, ok := obj.(*example.Pod); ok {
		*pod = *cleaned(pod).(*example.Pod)
	}
}

func clean(obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil || accessor.GetAnnotations() == nil {
		return
	}
	delete(accessor.GetAnnotations(), logicalcluster.AnnotationKey)
	if len(accessor.GetAnnotations()) == 0 {
		accessor.SetAnnotations(nil)
	}
}

// suiteRecorder records lists of etcd under the names that the suites expect. It wraps what really
// lists twice: outside it turns our keys into theirs, inside it turns them back.
type suiteRecorder struct {
	kubernetes.Interface
	from, to string
}

func newSuiteRecorder(client kubernetes.Interface, root string) (kubernetes.Interface, *storagetesting.KubernetesRecorder) {
	recorder := storagetesting.NewKubernetesRecorder(&suiteRecorder{client, suiteRegistry, root})
	return &suiteRecorder{recorder, root, suiteRegistry}, recorder
}

func (r *suiteRecorder) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	opts.Continue = r.rename(opts.Continue)
	return r.Interface.List(ctx, r.rename(prefix), opts)
}

func (r *suiteRecorder) rename(key string) string {
	if rest, ok := strings.CutPrefix(key, r.from); ok {
		return r.to + rest
	}
	return key
}
