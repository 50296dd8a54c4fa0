package registry

import (
	"context"
	"errors"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// relistPause keeps a watch that fails at once from spinning; storage that is down needs longer anyway.
const relistPause = time.Second

// List returns the stored objects of all clusters.
func (r *Records) List(ctx context.Context) ([]unstructured.Unstructured, error) {
	items, err := r.listAll(inCluster(ctx, etcd.Wildcard, ""))
	if err != nil {
		return nil, err
	}
	return items.Items, nil
}

// UIDs are those of all objects that the cluster has stored, from a consistent read.
func (r *Records) UIDs(ctx context.Context, cluster logicalcluster.Name) (sets.Set[types.UID], error) {
	items, err := r.listAll(inCluster(ctx, cluster, ""))
	if err != nil {
		return nil, err
	}
	uids := sets.New[types.UID]()
	for i := range items.Items {
		uids.Insert(items.Items[i].GetUID())
	}
	return uids, nil
}

// Watch calls handle, from one goroutine, with every object of all clusters: first with Added for
// each that is stored, then once with Bookmark and nil, then with every change, until ctx ends. After
// a cut that can't be resumed it calls handle with Error and nil, and starts over.
func (r *Records) Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error {
	all := inCluster(ctx, etcd.Wildcard, "")
	for ctx.Err() == nil {
		version, err := r.list(all, handle)
		for err == nil && ctx.Err() == nil {
			version, err = r.follow(all, version, handle)
		}
		if ctx.Err() != nil {
			break
		}
		klog.FromContext(ctx).V(2).Info("watch of instances starts anew", "export", r.export.String(), "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(relistPause):
			handle(watch.Error, nil)
		}
	}
	return ctx.Err()
}

// list hands out what is stored, and returns the version to watch from.
func (r *Records) list(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) (string, error) {
	items, err := r.listAll(ctx)
	if err != nil {
		return "", err
	}
	for i := range items.Items {
		handle(watch.Added, &items.Items[i])
	}
	handle(watch.Bookmark, nil)
	return items.GetResourceVersion(), nil
}

func (r *Records) listAll(ctx context.Context) (*unstructured.UnstructuredList, error) {
	list, err := r.store.Main.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	items, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return nil, apierrors.NewInternalError(errNotAList)
	}
	return items, nil
}

// follow hands out changes after version until the watch ends, and returns the version it has come to.
func (r *Records) follow(ctx context.Context, version string, handle func(watch.EventType, *unstructured.Unstructured)) (string, error) {
	watcher, err := r.store.Main.Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return version, err
	}
	defer drain(watcher)
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return version, apierrors.FromObject(event.Object)
		}
		if accessor, err := meta.Accessor(event.Object); err == nil {
			version = accessor.GetResourceVersion()
		}
		if instance := AsObject(event.Object); instance != nil && event.Type != watch.Bookmark {
			handle(event.Type, instance)
		}
	}
	return version, nil
}

// drain stops a watch and takes what it still has to hand out: storage passes events on from a goroutine that
// only ends when each has been taken.
func drain(watcher watch.Interface) {
	watcher.Stop()
	for range watcher.ResultChan() {
	}
}

var errNotAList = errors.New("instances are not listed as unstructured")
