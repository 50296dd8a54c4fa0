package gc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Loop keeps all stored instances of all served kinds true. Safe for concurrent use.
type Loop struct {
	config Config
	queue  *queue
	seen   *seen
	strays *strays

	doubts   *doubts
	relabels relabels

	mutex   sync.Mutex
	kinds   map[v1alpha1.ExportKey]*served
	running context.Context // watches run under it; nil before Run and after its end
	watches sync.WaitGroup

	busy     atomic.Int64 // keys that workers have
	progress atomic.Int64 // when a pass last began or ended, in nanoseconds since 1970
}

// New makes a loop. It does nothing before Run.
func New(config Config) *Loop {
	registerMetrics()
	l := &Loop{
		config:   config.withDefaults(),
		seen:     newSeen(),
		doubts:   newDoubts(),
		relabels: newRelabels(),
		kinds:    map[v1alpha1.ExportKey]*served{},
	}
	l.queue = newQueue(func() { l.busy.Add(1) })
	l.strays = newStrays(func(cluster logicalcluster.Name) bool { return l.config.Ownership.Owns(cluster) })
	l.progressed()
	l.config.Bindings.Subscribe(l.bindingChanged)
	l.config.Ownership.Subscribe(l.gained)
	return l
}

// Run works until ctx ends, and returns when all passes and watches have ended. It can be called once.
func (l *Loop) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.startWatches(ctx)

	var workers sync.WaitGroup
	for range l.config.Workers {
		workers.Go(func() { l.work(ctx) })
	}
	workers.Go(func() { l.resync(ctx) })
	workers.Go(func() { l.sweepForever(ctx) })
	workers.Go(func() { l.lookAtBindings(ctx) })
	workers.Go(func() { l.relabelForever(ctx) })

	<-ctx.Done()
	l.queue.ShutDown()
	l.doubts.ShutDown()
	l.relabels.ShutDown()
	workers.Wait()
	l.stopWatches()
}

func (l *Loop) startWatches(ctx context.Context) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.running = ctx
	for _, kind := range l.kinds {
		kind.start(ctx, &l.watches)
	}
}

func (l *Loop) stopWatches() {
	l.mutex.Lock()
	l.running = nil
	for _, kind := range l.kinds {
		kind.stop()
	}
	l.mutex.Unlock()
	l.watches.Wait()
}

// Serve starts looking after an export's instances. For an export that is served already it swaps the
// program: passes that run finish with the old one, and every instance has a pass with the new one
// coming. The same program and storage again change nothing.
func (l *Loop) Serve(export v1alpha1.ExportKey, program *engine.Program, instances Instances) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	kind, ok := l.kinds[export]
	if !ok {
		kind = newServed(l, export, program, instances)
		l.kinds[export] = kind
		if l.running != nil {
			kind.start(l.running, &l.watches)
		}
		return
	}
	kind.swap(program, instances)
}

// Stop ends looking after an export's instances. Nothing of theirs is touched. A pass that runs finishes.
func (l *Loop) Stop(export v1alpha1.ExportKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if kind, ok := l.kinds[export]; ok {
		kind.stop()
		delete(l.kinds, export)
		l.strays.again() // those of the export are of no interest any more
	}
}

// Enqueue asks for a pass over an instance.
func (l *Loop) Enqueue(key v1alpha1.InstanceKey) { l.enqueue(key, forced) }

// Reads tells the loop what a request is about to read that isn't the instance's own, while the request holds
// the instance's lock. It must be called before: see externals.
func (l *Loop) Reads(key v1alpha1.InstanceKey, uid types.UID, references []engine.Reference) {
	if kind := l.kind(key.Export); kind != nil {
		kind.externals.reads(key, uid, references)
	}
}

// Composed tells the loop what a request has composed, while the request still holds the instance's
// lock. The loop then knows the events that follow for echoes, and carries on where the request
// could not finish. err is what Apply returned beside the result, if anything.
func (l *Loop) Composed(key v1alpha1.InstanceKey, result *compose.Result, err error) {
	kind := l.kind(key.Export)
	if kind == nil {
		return
	}
	if err == nil && kind.took(result) {
		return
	}
	l.enqueue(key, forced)
}

// Tick is when the loop was last known to be alive: now while it has nothing to do, otherwise when a pass last
// began or ended. Older than StalledAfter means that it hangs.
func (l *Loop) Tick() time.Time {
	if l.busy.Load() == 0 && l.queue.Len() == 0 {
		return time.Now()
	}
	return time.Unix(0, l.progress.Load())
}

func (l *Loop) progressed() { l.progress.Store(time.Now().UnixNano()) }

func (l *Loop) kind(export v1alpha1.ExportKey) *served {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.kinds[export]
}

func (l *Loop) allKinds() []*served {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	kinds := make([]*served, 0, len(l.kinds))
	for _, kind := range l.kinds {
		kinds = append(kinds, kind)
	}
	return kinds
}

// enqueue makes an instance due, if it is this replica's. An event ends its backoff: what a pass failed on may
// be over, and if it isn't, that is soon to be tried again.
func (l *Loop) enqueue(key v1alpha1.InstanceKey, why reason) {
	if !l.config.Ownership.Owns(key.Cluster) {
		return
	}
	if !why.background {
		l.queue.settled(key)
	}
	l.queue.now(key, why)
}

// gained makes the instances due of clusters that have come to this replica.
func (l *Loop) gained(owns func(logicalcluster.Name) bool) {
	for _, kind := range l.allKinds() {
		kind.enqueueAll(routine, func(key v1alpha1.InstanceKey) bool { return owns(key.Cluster) })
		kind.lookAtAllBindings()
		kind.relabelAll(0)
	}
	l.listAnew() // strays of these clusters were somebody else's until now
}
