package etcd

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// deleteCollectionWorkers run a deletecollection; kube-apiserver's default is 1, which takes seconds
// for a hundred instances.
const deleteCollectionWorkers = 8

// RESTOptions make a genericregistry.Store keep its objects here, behind a watch cache of its own.
// The store's KeyRootFunc and KeyFunc must be resource.Root and resource.Key.
func (b *Backend) RESTOptions(resource Resource, codec runtime.Codec) (generic.RESTOptions, error) {
	if err := resource.Validate(); err != nil {
		return generic.RESTOptions{}, err
	}
	config := storagebackend.NewDefaultConfig(b.prefix, codec)
	config.Transformer = clusterTransformer{prefix: b.prefix + resource.Prefix()}
	return generic.RESTOptions{
		StorageConfig:  config.ForResource(resource.GroupResource),
		ResourcePrefix: resource.Prefix(),
		Decorator:      b.decorator(resource),
		// kcp's garbage collector never sees these kinds: the finalizers it would have to remove must
		// not be set.
		EnableGarbageCollection: false,
		DeleteCollectionWorkers: deleteCollectionWorkers,
	}, nil
}

func (b *Backend) decorator(resource Resource) generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource,
		resourcePrefix string,
		_ func(runtime.Object) (string, error), // calls KeyFunc without a context, hence without a cluster
		newFunc, newListFunc func() runtime.Object,
		attrs storage.AttrFunc,
		triggers storage.IndexerFuncs,
		indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		raw, stopRaw, err := b.raw(config, resourcePrefix, newFunc, newListFunc)
		if err != nil {
			return nil, nil, err
		}
		cached, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage:             raw,
			Versioner:           storage.APIObjectVersioner{},
			GroupResource:       config.GroupResource,
			EventsHistoryWindow: config.EventsHistoryWindow,
			ResourcePrefix:      resourcePrefix,
			KeyFunc:             resource.KeyOf,
			NewFunc:             newFunc,
			NewListFunc:         newListFunc,
			GetAttrsFunc:        attrs,
			IndexerFuncs:        triggers,
			Indexers:            indexers,
			Codec:               config.Codec,
		})
		if err != nil {
			stopRaw()
			return nil, nil, fmt.Errorf("making the watch cache of %s: %w", config.GroupResource, err)
		}
		delegator := cacher.NewCacheDelegator(cached, raw)
		destroy := sync.OnceFunc(func() {
			delegator.Stop()
			cached.Stop()
			stopRaw()
		})
		return &clusterStorage{Interface: delegator, raw: raw, resource: resource}, destroy, nil
	}
}

// raw is etcd without a cache, over the shared client.
func (b *Backend) raw(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object) (storage.Interface, func(), error) {
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(b.client, b.compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, config.Transformer, config.LeaseManagerConfig,
		etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("making the storage of %s: %w", config.GroupResource, err)
	}
	return store, store.Close, nil
}
