package kind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// readyPollInterval is how often WaitReady looks. A cache of no objects is ready within milliseconds.
const readyPollInterval = 5 * time.Millisecond

// StoreOptions say where objects of a kind are stored, and what users may write.
type StoreOptions struct {
	// Backend is shared by all kinds.
	Backend *etcd.Backend
	// ExportCluster is the logical cluster of the provider's workspace.
	ExportCluster logicalcluster.Name
	// Allowed are the reserved labels, annotations and finalizers that users may write all the same.
	Allowed []string
	// ClaimLabels may be nil: then no export sees the objects through a claim.
	ClaimLabels ClaimLabels
}

// ClaimLabels returns the labels that an object of a cluster is to be stored with: those that it has, with kcp's
// labels of claims brought up to date. It returns its argument if they are, and never changes it.
type ClaimLabels func(cluster logicalcluster.Name, resource schema.GroupResource, labels map[string]string) map[string]string

// Store keeps the objects of one kind. Requests must carry their logical cluster
// (etcd.WithCluster) and namespace in their context.
//
// Objects that Main returns from a list, or from a get with a resourceVersion, share memory with the
// watch cache: copy them before changing anything. So do those of a watch that serves an API request;
// other watches yield copies.
type Store struct {
	// Kind that is stored.
	Kind *Kind
	// Main is for users, who can't write status or reserved metadata, and under WithInternal for krop,
	// which can write reserved metadata.
	Main *genericregistry.Store
	// Status writes status and nothing else.
	Status *genericregistry.Store

	claims claims
}

// NewStore opens the storage of a kind and starts its watch cache. Several stores may be open on the
// same objects, of one process and of several; that is how a schema is swapped.
func NewStore(k *Kind, options StoreOptions) (*Store, error) {
	if options.Backend == nil {
		return nil, errors.New("a store needs a backend")
	}
	resource := etcd.Resource{
		ExportCluster: options.ExportCluster,
		GroupResource: k.GVR().GroupResource(),
		Namespaced:    k.Namespaced(),
	}
	restOptions, err := options.Backend.RESTOptions(resource, k.codecs.storage)
	if err != nil {
		return nil, fmt.Errorf("storage of %s: %w", resource.GroupResource, err)
	}
	stamped := claims{resource: resource.GroupResource, labels: options.ClaimLabels}
	main := k.store(resource, mainStrategy{
		customResourceStrategy: k.strategy,
		kind:                   k,
		reservation:            reservation{allowed: sets.New(options.Allowed...)},
		claims:                 stamped,
	})
	if err := main.CompleteWithOptions(&generic.StoreOptions{RESTOptions: restOptions, AttrFunc: k.strategy.GetAttrs}); err != nil {
		return nil, fmt.Errorf("storage of %s: %w", resource.GroupResource, err)
	}
	status := *main
	status.UpdateStrategy = statusStrategy{k.status, stamped}
	status.ResetFieldsStrategy = k.status
	return &Store{Kind: k, Main: main, Status: &status, claims: stamped}, nil
}

func (k *Kind) store(resource etcd.Resource, strategy mainStrategy) *genericregistry.Store {
	return &genericregistry.Store{
		// The type in a new object tells the decoder what to convert to.
		NewFunc: func() runtime.Object {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(k.GVK())
			return object
		},
		NewListFunc: func() runtime.Object {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(k.ListGVK())
			return list
		},
		KeyRootFunc:               resource.Root,
		KeyFunc:                   resource.Key,
		PredicateFunc:             strategy.MatchCustomResourceDefinitionStorage,
		DefaultQualifiedResource:  resource.GroupResource,
		SingularQualifiedResource: schema.GroupResource{Group: resource.Group, Resource: k.crd.Spec.Names.Singular},
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		ResetFieldsStrategy:       strategy,
		TableConvertor:            k.columns,
	}
}

// WaitReady waits until the watch cache has read all objects. Before that, lists and watches are
// answered with 429 and Retry-After.
func (s *Store) WaitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, readyPollInterval, true, func(context.Context) (bool, error) {
		last = s.Main.ReadinessCheck()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the watch cache of %s isn't ready: %w", s.Kind.GVR().GroupResource(), errors.Join(err, last))
	}
	return nil
}

// Destroy stops the watch cache. Open watches end, and clients resume them elsewhere. What is stored stays.
func (s *Store) Destroy() { s.Main.Destroy() }
