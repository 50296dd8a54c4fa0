package gc

import (
	"context"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// household is the instances of one kind in one consumer cluster: what one binding is for.
type household struct {
	export   v1alpha1.ExportKey
	consumer logicalcluster.Name
}

// doubts are the consumers whose binding has to be looked for, by export. One worker does it, and asks once for
// all that wait when it comes to an export. Safe for concurrent use.
type doubts struct {
	workqueue.TypedRateLimitingInterface[v1alpha1.ExportKey]

	mutex    sync.Mutex
	clusters map[v1alpha1.ExportKey]sets.Set[logicalcluster.Name]
}

func newDoubts() *doubts {
	return &doubts{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[v1alpha1.ExportKey](recheckFirst, recheckMost),
			workqueue.TypedRateLimitingQueueConfig[v1alpha1.ExportKey]{Name: "gc-bindings"}),
		clusters: map[v1alpha1.ExportKey]sets.Set[logicalcluster.Name]{},
	}
}

// add has the clusters' bindings looked for.
func (d *doubts) add(export v1alpha1.ExportKey, clusters ...logicalcluster.Name) {
	d.note(export, clusters)
	d.Add(export)
}

// retry has them looked for again, later.
func (d *doubts) retry(export v1alpha1.ExportKey, clusters []logicalcluster.Name) {
	d.note(export, clusters)
	d.AddRateLimited(export)
}

func (d *doubts) note(export v1alpha1.ExportKey, clusters []logicalcluster.Name) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.clusters[export] == nil {
		d.clusters[export] = sets.New[logicalcluster.Name]()
	}
	d.clusters[export].Insert(clusters...)
}

// take removes and returns the clusters in doubt.
func (d *doubts) take(export v1alpha1.ExportKey) []logicalcluster.Name {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	clusters := d.clusters[export].UnsortedList()
	delete(d.clusters, export)
	return clusters
}

// unbound are instances whose consumer was proven, when they were stored already, to have no binding
// any more. Safe for concurrent use.
type unbound struct {
	mutex sync.Mutex
	uids  sets.Set[types.UID]
}

func newUnbound() *unbound { return &unbound{uids: sets.New[types.UID]()} }

func (u *unbound) add(uids []types.UID) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.uids.Insert(uids...)
}

func (u *unbound) remove(uids ...types.UID) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.uids.Delete(uids...)
}

func (u *unbound) has(uid types.UID) bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.uids.Has(uid)
}

// bindingChanged takes up an event of a binding. What it says about a binding that has gone is only a hint.
func (l *Loop) bindingChanged(export v1alpha1.ExportKey, cluster logicalcluster.Name, bound bool) {
	kind := l.kind(export)
	if kind == nil {
		return
	}
	l.bindingOfChildren(export, cluster)
	if !bound {
		l.doubts.add(export, cluster)
		return
	}
	kind.unbound.remove(kind.index.uidsIn(cluster)...)
	kind.wake()
	kind.enqueueAllIn(cluster, forced) // children can be reached again, or a claim was accepted
}

// lookAtBindings works until the queue is shut down.
func (l *Loop) lookAtBindings(ctx context.Context) {
	for {
		export, shutdown := l.doubts.Get()
		if shutdown {
			return
		}
		clusters := l.doubts.take(export)
		if l.lookAtBindingsOf(ctx, export, clusters) {
			l.doubts.Forget(export)
		} else {
			l.doubts.retry(export, clusters)
		}
		l.doubts.Done(export)
	}
}

// lookAtBindingsOf marks what consumers have left behind whose binding is known to be gone. The instances are listed
// before bindings are looked for: one that is created after a new binding is not among them. certain is
// false if the look has to be repeated.
func (l *Loop) lookAtBindingsOf(ctx context.Context, export v1alpha1.ExportKey, clusters []logicalcluster.Name) (certain bool) {
	kind := l.kind(export)
	if kind == nil {
		return true
	}
	left := map[logicalcluster.Name][]types.UID{}
	for _, cluster := range clusters {
		if uids := kind.index.uidsIn(cluster); len(uids) > 0 && kind.owns(cluster) {
			left[cluster] = uids
		}
	}
	if len(left) == 0 {
		return true
	}
	holders, known := l.config.Bindings.Holders(ctx, export)
	if !known {
		return false
	}
	for cluster, uids := range left {
		if holders.Has(cluster) {
			continue
		}
		klog.FromContext(ctx).Info("consumer has unbound; its instances are reclaimed",
			"export", export.String(), "cluster", cluster.String(), "instances", len(uids))
		kind.unbound.add(uids)
		kind.enqueueAllIn(cluster, forced)
	}
	return true
}

// lookAtAllBindings asks for a look at the bindings of all consumers of the kind: one that has unbound while
// nobody watched is found by it.
func (s *served) lookAtAllBindings() {
	if clusters := s.index.clusters(); len(clusters) > 0 {
		s.loop.doubts.add(s.export, clusters...)
	}
}
