package gc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// firstPatience is for how long a watch that can't list yet is left to its own backoff when bindings change. It
// doubles each time, so that one whose list takes long comes to an end of it however many consumers bind meanwhile.
const firstPatience = time.Second

// externals is what the instances of one kind only read: who reads what, and the watches that tell of it.
// There is one watch per source, whatever the number of instances.
//
// # Why no change is missed
//
// An instance that has read an object, or found it missing, has a pass coming after every later change,
// because two things hold:
//
//   - An instance is among the readers before it reads (readers.add, called by compose through
//     compose.Request.Reads), and reads are made of the API server itself. So an event that came too early to find it
//     tells of something that the read has seen.
//   - Once a watch has listed for the first time, all that are among the readers by then are due. So what
//     happened between a read and the list needs no event, which there is none of for an object that
//     went in that time. Who becomes a reader later reads what the list has, or something newer, and
//     everything newer than the list has its event: the watch begins at the list's version, and after a
//     cut the differences to what was known are told.
//
// A watch that is begun anew, since it could not list or because a program dropped it meanwhile, lists for the
// first time again. Events are hints: of an object behind a claim that was revoked, kcp says that it was deleted.
type externals struct {
	reviews

	kind    *served
	readers *readers
	waking  atomic.Bool // watches that have not listed are to start anew
	watches map[source]*externalWatch
	running sync.WaitGroup
}

func newExternals(kind *served) *externals {
	return &externals{reviews: newReviews(), kind: kind, readers: newReaders(), watches: map[source]*externalWatch{}}
}

// wake makes consumer watches start anew that can't list: before the first binding they have no endpoint
// and wait longer and longer.
func (e *externals) wake() {
	e.waking.Store(true)
	e.reconsider()
}

// follow keeps the watches that the program needs running until ctx ends.
func (e *externals) follow(ctx context.Context) {
	defer e.running.Wait()
	e.reviews.follow(ctx, e.look)
}

func (e *externals) look(ctx context.Context) {
	waking, patience := e.waking.Swap(false), map[source]time.Duration{}
	needed := e.needed()
	for s, running := range e.watches {
		_, stays := needed[s]
		tired := waking && s.target == v1alpha1.TargetConsumer && running.isTired()
		if stays && !tired {
			continue
		}
		if tired {
			patience[s] = 2 * running.patience
		}
		running.end()
		delete(e.watches, s)
	}
	for s, selects := range needed {
		if _, ok := e.watches[s]; !ok {
			e.watches[s] = e.start(ctx, s, selects, max(firstPatience, patience[s]))
		}
		e.watches[s].labels.wanted.Store(selects)
	}
}

// needed is what the program reads, and of which of it labels matter.
func (e *externals) needed() map[source]bool {
	all := map[source]bool{}
	program, _ := e.kind.current()
	for _, node := range program.Nodes {
		if node.External {
			s := source{target: node.Target, gvr: node.GVR}
			all[s] = all[s] || node.Selects
		}
	}
	return all
}

func (e *externals) start(ctx context.Context, s source, selects bool, patience time.Duration) *externalWatch {
	ctx, end := context.WithCancel(ctx)
	w := &externalWatch{of: e, source: s, labels: newLabelMemory(selects), end: end, began: time.Now(), patience: patience}
	e.running.Go(func() {
		err := e.kind.loop.config.Sources.WatchAll(ctx, s.target, e.kind.export, s.gvr, w.told)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "what instances read can't be watched", "export", e.kind.export.String(), "source", s.String())
		}
	})
	return w
}

// reads says that the instance is about to read these. It must be called before.
func (e *externals) reads(key v1alpha1.InstanceKey, uid types.UID, references []engine.Reference) {
	e.readers.add(key, uid, references)
}

// settled says that this is the last plan that was made, so that nothing else is of interest to the instance.
func (e *externals) settled(key v1alpha1.InstanceKey, uid types.UID, plan *engine.Plan) {
	if plan != nil {
		e.readers.set(key, uid, plan.References())
	}
}

// enqueue makes instances due.
func (e *externals) enqueue(keys []v1alpha1.InstanceKey, why reason) {
	for _, key := range keys {
		e.kind.loop.enqueue(key, why)
	}
}

// changed makes instances due that read what has changed: at once, but not many times a second. Hundreds of them may
// read what somebody writes, so they come behind what concerns single ones. Events that keep coming end no backoff.
func (e *externals) changed(keys []v1alpha1.InstanceKey) {
	loop, now := e.kind.loop, time.Now()
	for _, key := range keys {
		if !e.kind.owns(key.Cluster) {
			continue
		}
		delay := e.readers.delay(key, now, loop.config.readPause)
		if delay == 0 {
			loop.queue.settled(key)
		}
		loop.queue.after(key, routine, delay)
	}
}

// externalWatch is the watch of all objects of one source.
type externalWatch struct {
	of       *externals
	source   source
	labels   *labelMemory
	listed   atomic.Bool
	end      context.CancelFunc
	began    time.Time
	patience time.Duration
}

// isTired says whether the watch has tried to list for so long that its backoff may have grown.
func (w *externalWatch) isTired() bool {
	return !w.listed.Load() && time.Since(w.began) >= w.patience
}

// told takes up an event. Versions aren't compared with what composing has seen, as those of children are: that one
// instance has taken an object into account says nothing of the others that read it.
func (w *externalWatch) told(event watch.EventType, object *unstructured.Unstructured) {
	if event == watch.Bookmark {
		w.listed.Store(true)
		w.of.enqueue(w.of.readers.all(w.source), routine)
		return
	}
	at := placeOf(w.source, logicalcluster.From(object))
	had := w.labels.change(event, object)
	if w.listed.Load() { // before, all are due anyway
		w.of.changed(w.of.readers.of(at, object.GetNamespace(), object.GetName(), had))
	}
}
