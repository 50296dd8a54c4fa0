package etcd

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// namespaceField is the field selector that every namespaced kind supports.
const namespaceField = "metadata.namespace"

// clusterStorage is what a genericregistry.Store reads and writes: the watch cache in front of raw
// storage, with the reads of Wildcard made safe and the updates made single-tried.
type clusterStorage struct {
	storage.Interface // the cache's delegator
	raw               storage.Interface
	resource          Resource
}

var _ storage.Interface = &clusterStorage{}

// GuaranteedUpdate goes to etcd without an object from the cache. With one, each update of an object
// that was just written first runs against a stale copy, and everything that the update calls (which
// is composing, with all its calls to other API servers) runs a second time.
func (s *clusterStorage) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, _ runtime.Object,
) error {
	return s.raw.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, nil)
}

// GetList lists what the context's cluster and namespace allow.
func (s *clusterStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	opts, err := s.restrict(ctx, opts)
	if err != nil {
		return err
	}
	return s.Interface.GetList(ctx, key, opts, list)
}

// Watch watches what the context's cluster and namespace allow. A watch that doesn't belong to an API
// request, which is to say krop's own, yields objects that are the receiver's to keep and change.
func (s *clusterStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	opts, err := s.restrict(ctx, opts)
	if err != nil {
		return nil, err
	}
	watcher, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if _, isRequest := request.RequestInfoFrom(ctx); isRequest {
		return watcher, nil
	}
	return watch.Filter(watcher, ownObject), nil
}

// ownObject takes the object out of the wrapper that lets several watchers of an event share its
// encoding: as soon as three watch, events hold that instead of the object.
func ownObject(event watch.Event) (watch.Event, bool) {
	if cached, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = cached.GetObject() // a copy already
	} else if event.Type != watch.Error {
		event.Object = event.Object.DeepCopyObject()
	}
	return event, true
}

// restrict refuses reads that no key can express safely, and adds the namespace to the selector
// where the key can't hold it: in all clusters.
func (s *clusterStorage) restrict(ctx context.Context, opts storage.ListOptions) (storage.ListOptions, error) {
	cluster, namespace, err := s.resource.scope(ctx)
	if err != nil {
		return opts, err
	}
	if cluster == Wildcard && namespace != "" {
		inNamespace := fields.OneTermEqualSelector(namespaceField, namespace)
		opts.Predicate.Field = fields.AndSelectors(opts.Predicate.Field, inNamespace)
	}
	return opts, nil
}
