package plane

import (
	"context"
	"errors"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// allConsumers is the cluster of reads over all consumers of an export.
const allConsumers logicalcluster.Name = "*"

// Backoff of a watch that can't be started: short at first, because an export that was just bound or
// a kind that was just published is served a moment later; at most a few seconds, because children
// that change meanwhile are noticed only then.
const (
	watchRetryFirst = 200 * time.Millisecond
	watchRetryMost  = 5 * time.Second
	watchRetrySteps = 6
)

// Watch implements Sources. It asks for metadata only, so that neither Secrets nor large specs travel
// or stay in memory; of each child it keeps what identifies it.
func (s *Set) Watch(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, blueprintLabel string, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error {
	if target == v1alpha1.TargetHost && s.host == nil {
		return ErrNoHost
	}
	children := s.source(target, export, gvr)
	children.selector = childrenOf(target, export, blueprintLabel).String()
	children.follow(ctx, newHerald(gvr, handle))
	return nil
}

// WatchAll implements Sources. Of each object it keeps its name and version.
func (s *Set) WatchAll(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error {
	if target == v1alpha1.TargetHost && s.host == nil {
		return ErrNoHost
	}
	strangers := s.source(target, export, gvr)
	strangers.bare = true
	strangers.follow(ctx, newStrangersHerald(gvr, handle))
	return nil
}

// source is all objects of a resource on a target's plane.
func (s *Set) source(target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource) *source {
	return &source{
		name: string(target) + " " + gvr.String() + " of " + export.String(),
		resource: func(ctx context.Context) (metadata.ResourceInterface, error) {
			return s.awaitMetadata(ctx, target, export, gvr)
		},
	}
}

// childrenOf are the labels of the children to be watched. Blueprints of different workspaces may have one name,
// and the host has the children of all of them.
func childrenOf(target v1alpha1.Target, export v1alpha1.ExportKey, blueprintLabel string) labels.Set {
	if target == v1alpha1.TargetHost {
		return labels.Set{v1alpha1.LabelBlueprint: blueprintLabel, v1alpha1.LabelProviderCluster: export.Cluster.String()}
	}
	return labels.Set{v1alpha1.LabelBlueprint: blueprintLabel}
}

// watchRetry is a backoff from its beginning.
func watchRetry() *wait.Backoff {
	return &wait.Backoff{Duration: watchRetryFirst, Cap: watchRetryMost, Steps: watchRetrySteps, Factor: 2, Jitter: 0.5}
}

// awaitMetadata waits until it is known where the resource is. That an export which nobody has bound has
// no address is no failure: the reflector would report each attempt as one.
func (s *Set) awaitMetadata(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource) (metadata.ResourceInterface, error) {
	retry := watchRetry()
	for {
		client, err := s.metadata(ctx, target, export, gvr)
		// not found: kcp makes the object with the addresses a moment after the export
		if err == nil || !errors.Is(err, ErrNotReachable) && !apierrors.IsNotFound(err) {
			return client, err
		}
		klog.FromContext(ctx).V(2).Info("nothing to watch yet", "target", target, "resource", gvr, "export", export, "err", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(untilLook(retry, export)):
		}
	}
}

// metadata is a client for the resource. It is made for each list and watch, since the address of a
// virtual workspace may change, or not be known yet.
func (s *Set) metadata(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource) (metadata.ResourceInterface, error) {
	address, err := s.address(ctx, target, export, allConsumers)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfigAndClient(address.at(), address.client)
	if err != nil {
		return nil, err
	}
	return client.Resource(gvr), nil
}

// source lists and watches one resource.
type source struct {
	name     string
	resource func(context.Context) (metadata.ResourceInterface, error)
	selector string // of labels
	bare     bool   // lists keep no more of an object than what bare leaves
}

// follow lists and watches until ctx ends.
func (s *source) follow(ctx context.Context, store *herald) {
	cache.NewReflectorWithOptions(s, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{
		Name:    s.name,
		Backoff: watchRetry(),
	}).RunWithContext(ctx)
}

var _ cache.ListerWatcherWithContext = &source{}

// IsWatchListSemanticsUnSupported makes the reflector list before it watches: virtual workspaces don't
// promise the bookmark that ends a streamed list.
func (*source) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext implements cache.ListerWatcherWithContext.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	resource, err := s.resource(ctx)
	if err != nil {
		return nil, err
	}
	options.LabelSelector = s.selector
	list, err := resource.List(ctx, options)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if s.bare {
			bare(&list.Items[i].ObjectMeta)
		}
	}
	return list, nil
}

// bare takes off what no event is about. A list of all objects that there are is in memory as a whole, and
// managed fields and annotations are most of it.
func bare(of *metav1.ObjectMeta) {
	left := metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion, Labels: of.Labels}
	if cluster, ok := of.Annotations[v1alpha1.AnnotationCluster]; ok {
		left.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	}
	*of = left
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	resource, err := s.resource(ctx)
	if err != nil {
		return nil, err
	}
	options.LabelSelector = s.selector
	return resource.Watch(ctx, options)
}

// List implements cache.ListerWatcher, which the reflector's constructor asks for.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}
