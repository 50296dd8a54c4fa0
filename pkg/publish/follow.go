package publish

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/kcp-dev/sdk/apis/apis/v1alpha2/permissionclaims"
	typedv1alpha2 "github.com/kcp-dev/sdk/client/clientset/versioned/typed/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Reads that confirm what the watch hasn't seen are limited per export: 5 per second, 20 at once. A fresh
// binding needs one; anything more is somebody who asks for workspaces that have bound nothing.
const (
	confirmRate  = 5
	confirmBurst = 20
)

// followed is one export whose bindings are followed. clusters is guarded by the lock of Bindings.
type followed struct {
	export   v1alpha1.ExportKey
	list     func(context.Context, metav1.ListOptions) (*apisv1alpha2.APIBindingList, error)
	limit    flowcontrol.RateLimiter
	stop     context.CancelFunc
	listed   chan struct{} // closed after the first list
	once     sync.Once
	clusters map[logicalcluster.Name]map[string]*binding
}

func (f *followed) bound(cluster logicalcluster.Name) bool {
	for _, binding := range f.clusters[cluster] {
		if binding.bound {
			return true
		}
	}
	return false
}

// isListed says whether the bindings have been listed once.
func (f *followed) isListed() bool {
	select {
	case <-f.listed:
		return true
	default:
		return false
	}
}

func errNotTracked(export v1alpha1.ExportKey) error {
	return fmt.Errorf("bindings of %s are not followed", export)
}

// bindingsIn are the bindings to one export in one workspace, or in all.
type bindingsIn struct {
	typedv1alpha2.APIBindingInterface
	// selector is needed where consumers let krop see all of their bindings: only those of this export count.
	selector string
}

// bindings are read through the export's virtual workspace, where they are always readable. Its address is not taken from
// the export's endpoint slice, which is empty while nobody has bound the export, but from kcp's own rule for it: so the
// first binding is seen by event.
func (k *kcp) bindings(export v1alpha1.ExportKey, cluster logicalcluster.Path) (bindingsIn, error) {
	w, err := k.at(cluster, k.virtual.JoinPath(virtualWorkspacePath(export)).String()+cluster.RequestPath())
	if err != nil {
		return bindingsIn{}, err
	}
	selector := apisv1alpha1.InternalAPIBindingExportLabelKey + "=" + permissionclaims.ToAPIBindingExportLabelValue(export.Cluster, export.Name)
	return bindingsIn{w.kcp.ApisV1alpha2().APIBindings(), selector}, nil
}

// List lists those of the export.
func (b bindingsIn) List(ctx context.Context, options metav1.ListOptions) (*apisv1alpha2.APIBindingList, error) {
	options.LabelSelector = b.selector
	return b.APIBindingInterface.List(ctx, options)
}

// Watch watches those of the export.
func (b bindingsIn) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = b.selector
	return b.APIBindingInterface.Watch(ctx, options)
}

// follow starts to list and watch.
func (b *Bindings) follow(export v1alpha1.ExportKey) (*followed, error) {
	bindings, err := b.kcp.bindings(export, logicalcluster.Wildcard)
	if err != nil {
		return nil, err
	}
	source := listerWatcher{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return bindings.List(ctx, options)
		},
		WatchFuncWithContext: bindings.Watch,
	}}
	ctx, stop := context.WithCancel(context.Background())
	f := &followed{
		export:   export,
		list:     bindings.List,
		limit:    flowcontrol.NewTokenBucketRateLimiter(confirmRate, confirmBurst),
		stop:     stop,
		listed:   make(chan struct{}),
		clusters: map[logicalcluster.Name]map[string]*binding{},
	}
	options := cache.ReflectorOptions{Name: "bindings of " + export.String(), Backoff: relistBackoff()}
	reflector := cache.NewReflectorWithOptions(source, &apisv1alpha2.APIBinding{}, &bindingStore{bindings: b, followed: f}, options)
	go func() {
		if f.awaitServed(ctx) {
			reflector.RunWithContext(ctx)
		}
	}()
	return f, nil
}

// awaitServed waits until the bindings can be listed, or ctx ends. kcp serves a new export's virtual workspace a
// moment after the export is there: a reflector would take that for an error and say so.
func (f *followed) awaitServed(ctx context.Context) bool {
	said := false
	err := relistBackoff().DelayWithReset(clock.RealClock{}, time.Hour).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_, err := f.list(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !isUnknownResource(err) && !said {
			klog.FromContext(ctx).Info("bindings can't be listed; trying again", "export", f.export.String(), "err", err)
			said = true
		}
		return err == nil, nil
	})
	return err == nil
}

// relistBackoff starts early, because a new export is served within a moment, and ends at a few seconds, because
// bindings that are seen late are children that are reclaimed late.
func relistBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 5 * time.Second}
}

// listerWatcher lists before it watches: virtual workspaces don't send initial events.
type listerWatcher struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells the reflector so.
func (listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }
