package gc

import (
	"context"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// served is one kind that the loop looks after. Safe for concurrent use.
type served struct {
	loop      *Loop
	export    v1alpha1.ExportKey
	index     *index
	children  *children
	externals *externals
	unbound   *unbound

	mutex     sync.Mutex
	program   *engine.Program
	instances Instances
	ctx       context.Context // of everything that runs for the kind; nil before start
	cancel    context.CancelFunc
	unfollow  context.CancelFunc // ends the watch of instances
	running   *sync.WaitGroup
}

func newServed(loop *Loop, export v1alpha1.ExportKey, program *engine.Program, instances Instances) *served {
	s := &served{loop: loop, export: export, index: newIndex(export), unbound: newUnbound(), program: program, instances: instances}
	s.children, s.externals = newChildren(s), newExternals(s)
	return s
}

// start begins to watch. running counts what has to end before the loop has ended.
func (s *served) start(ctx context.Context, running *sync.WaitGroup) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.running = running
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.follow()
	running.Go(func() { s.children.follow(s.ctx) })
	running.Go(func() { s.externals.follow(s.ctx) })
	s.externals.reconsider()
}

func (s *served) stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// swap replaces program and storage at once. It restarts no more than what has changed.
func (s *served) swap(program *engine.Program, instances Instances) {
	s.mutex.Lock()
	// Another program may come of the same spec, compiled against kinds that have changed.
	different := program.SpecHash != s.program.SpecHash || program.Kinds.Hash() != s.program.Kinds.Hash()
	newStorage := instances != s.instances
	s.program, s.instances = program, instances
	if newStorage && s.ctx != nil && s.ctx.Err() == nil { // after the loop's end nobody waits for what is begun
		s.unfollow()
		s.follow()
	}
	s.mutex.Unlock()

	s.children.reconsider()
	s.externals.reconsider()
	if different {
		s.enqueueAll(routine, func(v1alpha1.InstanceKey) bool { return true })
	}
}

// current is what a pass works with. The two belong together.
func (s *served) current() (*engine.Program, Instances) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.program, s.instances
}

// follow watches the instances. The mutex is held.
func (s *served) follow() {
	ctx, cancel := context.WithCancel(s.ctx)
	s.unfollow = cancel
	instances, told := s.instances, newListing(s).told
	s.running.Go(func() {
		if err := instances.Watch(ctx, told); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "watch of instances has ended", "export", s.export.String())
		}
	})
}

// instanceChanged takes up an event of the watch of instances.
func (s *served) instanceChanged(event watch.EventType, instance *unstructured.Unstructured) {
	switch event {
	case watch.Bookmark:
		// Children are watched from now on, so that their events find their instances.
		s.children.begin()
		s.lookAtAllBindings()
		s.relabelAll(0)
	case watch.Added, watch.Modified:
		why := changed(versionOf(instance))
		why.background = !s.children.listed.Load() // a start is no event
		s.loop.enqueue(s.put(instance), why)
	case watch.Deleted:
		s.forget(instance)
	}
}

func (s *served) put(instance *unstructured.Unstructured) v1alpha1.InstanceKey {
	key, sourcesChanged := s.index.put(instance)
	if sourcesChanged {
		s.children.reconsider()
	}
	return key
}

func (s *served) keyOf(instance *unstructured.Unstructured) v1alpha1.InstanceKey {
	return v1alpha1.InstanceKey{
		Export: s.export, Cluster: logicalcluster.From(instance),
		Namespace: instance.GetNamespace(), Name: instance.GetName(),
	}
}

// forget drops an instance that is gone. If it went without its children, by force, they are orphans.
func (s *served) forget(instance *unstructured.Unstructured) {
	s.loop.nestedGone(instance)
	s.drop(s.keyOf(instance), instance.GetUID())
	for _, row := range inventory(instance) {
		if row.Name != "" && row.UID != "" && row.DeletionPolicy != v1alpha1.DeletionOrphan {
			s.loop.strays.add(strayOfRow(s.export, instance, row))
		}
	}
}

// drop drops all that is known of an instance.
func (s *served) drop(key v1alpha1.InstanceKey, uid types.UID) {
	s.unbound.remove(uid)
	s.externals.readers.remove(key, uid)
	if s.index.remove(uid) {
		s.children.reconsider()
	}
}

// forgetKey drops whatever is known under a name of which storage says that there is nothing.
func (s *served) forgetKey(key v1alpha1.InstanceKey) {
	s.unbound.remove(s.index.removeKey(key)...)
	s.externals.readers.removeKey(key)
}

// took takes into account what was composed outside of the loop, and says whether nothing is left
// to do but to wait for events.
func (s *served) took(result *compose.Result) bool {
	if result == nil || result.Instance == nil || result.Instance.GetUID() == "" {
		return false
	}
	// First the index: from now on, events of the children find their instance.
	key := s.put(result.Instance)
	s.externals.settled(key, result.Instance.GetUID(), result.Plan)
	missed := s.children.missed(result.Instance.GetUID())
	if missed || result.Err != nil || !s.upToDate(result.Instance) {
		return false
	}
	s.loop.seen.composed(key, result)
	return true
}

// upToDate says whether the instance was composed with the current program, and has nothing to be
// pruned, which requests leave to the loop.
func (s *served) upToDate(instance *unstructured.Unstructured) bool {
	program, _ := s.current()
	made := composition(instance)
	return made.Revision == program.SpecHash && !hasDeleting(made)
}

// enqueueAll makes the matching instances due.
func (s *served) enqueueAll(why reason, match func(v1alpha1.InstanceKey) bool) {
	for _, key := range s.index.keys(match) {
		s.loop.enqueue(key, why)
	}
}

// enqueueAllIn makes the instances of one cluster due.
func (s *served) enqueueAllIn(cluster logicalcluster.Name, why reason) {
	for _, key := range s.index.keysIn(cluster) {
		s.loop.enqueue(key, why)
	}
}

// wake makes watches that may have been waiting for the first binding try at once.
func (s *served) wake() {
	s.children.wake()
	s.externals.wake()
}

func (s *served) owns(cluster logicalcluster.Name) bool { return s.loop.config.Ownership.Owns(cluster) }
