package gc

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// CustomResourceDefinitions define kinds, on every plane. They are named <resource>.<group>.
var CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const (
	// settleFirst and settleTime: after a kind has changed, what uses it is looked at at once, and again with growing
	// pauses, since a server may go on telling what was before: kcp answers for all of a workspace's OpenAPI with 500
	// for some seconds, and shows documents of before. Nine looks, each of which reads an index if nothing has changed.
	settleFirst = 250 * time.Millisecond
	settleTime  = 30 * time.Second
	// deniedPause is how often krop asks whether it may watch kinds by now. A provider whose manifests are of an
	// earlier release has not granted it: there the resync notices what changes.
	deniedPause = time.Minute
)

// KindSources is how kinds are followed. *plane.Set is one.
type KindSources interface {
	WatchAll(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error
	Denied(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, rights []plane.Right) ([]plane.Right, error)
}

// Kinds follows what makes kinds appear, change and go on the planes that blueprints were compiled against: the
// workspaces of providers, and the host. Safe for concurrent use.
type Kinds struct {
	sources KindSources
	// resources are what is watched, by plane.
	resources map[v1alpha1.Target][]schema.GroupVersionResource

	mutex   sync.Mutex
	follows map[kindPlane]context.CancelFunc
	recent  map[kindGroup]time.Time // when it last changed; for settleTime
}

// kindPlane is a plane: a provider's workspace, or the host, which has none.
type kindPlane struct {
	target    v1alpha1.Target
	workspace logicalcluster.Name
}

// serves says whether blueprints of the workspace may use the plane's kinds.
func (p kindPlane) serves(workspace logicalcluster.Name) bool {
	return p.target == v1alpha1.TargetHost || p.workspace == workspace
}

// kindGroup is an API group of a plane; an empty one stands for all of them.
type kindGroup struct {
	kindPlane
	group string
}

// NewKinds makes a Kinds that follows nothing yet. resources are, for each plane, the objects that its kinds come from.
func NewKinds(sources KindSources, resources map[v1alpha1.Target][]schema.GroupVersionResource) *Kinds {
	return &Kinds{
		sources: sources, resources: resources,
		follows: map[kindPlane]context.CancelFunc{}, recent: map[kindGroup]time.Time{},
	}
}

// Changed says how long ago one of the kinds has changed, or may have. recently is false once all that servers say of
// them can be believed again.
func (k *Kinds) Changed(workspace logicalcluster.Name, kinds engine.UsedKinds) (ago time.Duration, recently bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	ago = settleTime
	for changed, at := range k.recent {
		if changed.serves(workspace) && kinds.On(changed.target, changed.group) {
			ago = min(ago, time.Since(at))
		}
	}
	return ago, ago < settleTime
}

// change is what is told of kinds.
type change struct {
	kindGroup
	// unseen says that nothing was seen to change, but that something may have before anybody looked.
	unseen bool
}

// follow begins to watch a plane, until ctx ends or unfollow is called. Following it again changes nothing.
func (k *Kinds) follow(ctx context.Context, at kindPlane, changed func(change)) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if _, ok := k.follows[at]; ok {
		return
	}
	ctx, k.follows[at] = context.WithCancel(ctx)
	for _, resource := range k.resources[at.target] {
		go k.watch(ctx, at, resource, changed)
	}
}

func (k *Kinds) unfollow(at kindPlane) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if stop, ok := k.follows[at]; ok {
		stop()
		delete(k.follows, at)
	}
}

// watch tells of every change, and once that all that was there has been listed.
func (k *Kinds) watch(ctx context.Context, at kindPlane, resource schema.GroupVersionResource, changed func(change)) {
	if !k.awaitRights(ctx, at, resource) {
		return
	}
	listed := false
	err := k.sources.WatchAll(ctx, at.target, v1alpha1.ExportKey{Cluster: at.workspace}, resource, func(event watch.EventType, object *unstructured.Unstructured) {
		switch {
		case ctx.Err() != nil:
		case event == watch.Bookmark:
			listed = true
			changed(change{kindGroup: kindGroup{kindPlane: at}, unseen: true})
		case listed:
			changed(change{kindGroup: k.note(at, resource, object.GetName())})
		}
	})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "kinds can't be watched", "target", at.target, "workspace", at.workspace, "resource", resource.String())
	}
}

// awaitRights waits until krop's user may watch, or ctx ends. A watch that is refused would be tried, and complained
// about, every few seconds.
func (k *Kinds) awaitRights(ctx context.Context, at kindPlane, resource schema.GroupVersionResource) bool {
	needed := []plane.Right{{GroupResource: resource.GroupResource(), Verbs: plane.ReadVerbs}}
	said := false
	for {
		denied, err := k.sources.Denied(ctx, at.target, v1alpha1.ExportKey{Cluster: at.workspace}, needed)
		pause := deniedPause
		switch {
		case err == nil && len(denied) == 0:
			return true
		case err != nil:
			pause = blueprintRetryMax
		case !said:
			klog.FromContext(ctx).Info("krop's user may not watch what defines kinds: their changes are noticed at the resync",
				"target", at.target, "workspace", at.workspace, "resource", resource.String())
			said = true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait.Jitter(pause, delayJitter)):
		}
	}
}

// note remembers a change for as long as it takes to settle.
func (k *Kinds) note(at kindPlane, resource schema.GroupVersionResource, name string) kindGroup {
	changed := kindGroup{kindPlane: at}
	if resource == CustomResourceDefinitions {
		_, changed.group, _ = strings.Cut(name, ".")
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for group, when := range k.recent {
		if time.Since(when) > settleTime {
			delete(k.recent, group)
		}
	}
	k.recent[changed] = time.Now()
	return changed
}
