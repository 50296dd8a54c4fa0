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

// households are those whose binding has to be looked at. One worker does it: it mostly finds the
// binding where it was, and what it reads of kcp otherwise is limited there.
type households = workqueue.TypedRateLimitingInterface[household]

func newHouseholds() households {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[household](recheckFirst, recheckMost),
		workqueue.TypedRateLimitingQueueConfig[household]{Name: "gc-bindings"})
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
	if !bound {
		l.households.Add(household{export, cluster})
		return
	}
	ofCluster := func(key v1alpha1.InstanceKey) bool { return key.Cluster == cluster }
	kind.unbound.remove(kind.index.uids(ofCluster)...)
	kind.wake()
	kind.enqueueAll(forced, ofCluster) // children can be reached again, or a claim was accepted
}

// lookAtBindings works until the queue is shut down.
func (l *Loop) lookAtBindings(ctx context.Context) {
	for {
		home, shutdown := l.households.Get()
		if shutdown {
			return
		}
		if l.lookAtBinding(ctx, home) {
			l.households.Forget(home)
		} else {
			l.households.AddRateLimited(home)
		}
		l.households.Done(home)
	}
}

// lookAtBinding marks what the consumer has left behind, if its binding is known to be gone. The
// instances are listed before the binding is looked for: one that is created after a new binding is not among
// them. certain is false if the look has to be repeated.
func (l *Loop) lookAtBinding(ctx context.Context, home household) (certain bool) {
	kind := l.kind(home.export)
	if kind == nil || !kind.owns(home.consumer) {
		return true
	}
	ofHome := func(key v1alpha1.InstanceKey) bool { return key.Cluster == home.consumer }
	left := kind.index.uids(ofHome)
	if len(left) == 0 {
		return true
	}
	has, known := l.config.Bindings.HasBinding(ctx, home.export, home.consumer)
	if !known || has {
		return known
	}
	klog.FromContext(ctx).Info("consumer has unbound; its instances are reclaimed",
		"export", home.export.String(), "cluster", home.consumer.String(), "instances", len(left))
	kind.unbound.add(left)
	kind.enqueueAll(forced, ofHome)
	return true
}

// lookAtAllBindings asks for a look at every household of the kind: one that has unbound while
// nobody watched is found by it.
func (s *served) lookAtAllBindings() {
	for _, cluster := range s.index.clusters() {
		s.loop.households.Add(household{s.export, cluster})
	}
}
