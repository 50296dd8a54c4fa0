package gc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// maxUnclaimed bounds for how many instances is remembered that events of their children came before
// their own. Storage's watch is rarely more than some milliseconds behind.
const maxUnclaimed = 1024

// children is the watches of the children of one kind, one per source.
type children struct {
	reviews

	kind    *served
	listed  atomic.Bool // the instances are known
	waking  atomic.Bool // quiet watches are to start anew
	listing atomic.Bool // watches of shared planes are to list anew
	watches map[source]*childWatch
	running sync.WaitGroup

	unclaimed *lru.Cache // UIDs of instances that children told of and the index did not have
}

// childWatch is the watch of one source.
type childWatch struct {
	end    context.CancelFunc
	before context.CancelFunc // ends the watch that this one replaces
	heard  atomic.Bool        // it has delivered something, so it works
}

func (w *childWatch) cancel() {
	w.before()
	w.end()
}

func newChildren(kind *served) *children {
	return &children{
		reviews:   newReviews(),
		kind:      kind,
		watches:   map[source]*childWatch{},
		unclaimed: lru.New(maxUnclaimed),
	}
}

// begin says that all stored instances are known.
func (c *children) begin() {
	c.listed.Store(true)
	c.reconsider()
}

// wake makes consumer watches start anew that have delivered nothing yet: before the first binding they have no
// endpoint and wait longer and longer. One that has delivered something is left alone, since starting
// anew it could not tell what was deleted meanwhile.
func (c *children) wake() {
	c.waking.Store(true)
	c.reconsider()
}

// listAnew has the children on shared planes told of once more.
func (c *children) listAnew() {
	c.listing.Store(true)
	c.reconsider()
}

// follow keeps the watches that are needed running until ctx ends.
func (c *children) follow(ctx context.Context) {
	defer c.running.Wait()
	c.reviews.follow(ctx, c.look)
}

func (c *children) look(ctx context.Context) {
	if !c.listed.Load() {
		return
	}
	waking := c.waking.Swap(false)
	needed := c.needed()
	for s, running := range c.watches {
		_, stays := needed[s]
		quiet := waking && s.target == v1alpha1.TargetConsumer && !running.heard.Load()
		if !stays || quiet {
			running.cancel()
			delete(c.watches, s)
		}
	}
	listing := c.listing.Swap(false)
	for s := range needed {
		running, ok := c.watches[s]
		switch {
		case !ok:
			c.watches[s] = c.start(ctx, s, func() {})
		case listing && s.target != v1alpha1.TargetConsumer && running.heard.Load():
			c.watches[s] = c.start(ctx, s, running.end)
		}
	}
}

// needed is what the program writes, and what inventories list although the program doesn't write it any more.
func (c *children) needed() map[source]struct{} {
	all := c.kind.index.sources()
	program, _ := c.kind.current()
	for _, node := range program.Nodes {
		if !node.External { // what isn't krop's carries no label to watch by
			all[source{target: node.Target, gvr: node.GVR}] = struct{}{}
		}
	}
	return all
}

// start watches a source. Once the watch has delivered something, or when it ends, it ends the one before: until then
// that one tells what is deleted.
func (c *children) start(ctx context.Context, s source, before context.CancelFunc) *childWatch {
	ctx, end := context.WithCancel(ctx)
	w := &childWatch{end: end, before: before}
	program, _ := c.kind.current()
	label := engine.BlueprintLabel(program.Blueprint)
	handle := func(event watch.EventType, child *unstructured.Unstructured) {
		if !w.heard.Swap(true) {
			before()
		}
		c.childChanged(s, event, child)
	}
	c.running.Go(func() {
		err := c.kind.loop.config.Sources.Watch(ctx, s.target, c.kind.export, label, s.gvr, handle)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "children can't be watched", "export", c.kind.export.String(), "source", s.String())
		}
	})
	return w
}

// childChanged makes the child's instance due.
func (c *children) childChanged(s source, event watch.EventType, child *unstructured.Unstructured) {
	uids := instanceUIDs(child)
	if len(uids) == 0 {
		return
	}
	why := changed(versionOf(child))
	switch event {
	case watch.Deleted:
		why = forced
	case watch.Added:
		why.background = true // one that was listed, or that krop has just written itself
	}
	uid := uids[0]
	for _, other := range uids[1:] {
		c.enqueue(other, why)
	}
	if c.enqueue(uid, why) {
		return
	}
	c.unclaimed.Add(uid, nil)
	if c.enqueue(uid, why) || event == watch.Deleted { // it may have come into the index just now
		return
	}
	if found, complete := c.kind.strayOf(s, child); complete {
		c.kind.loop.strays.add(found)
	}
}

// enqueue makes the instance due, if the index has it.
func (c *children) enqueue(uid types.UID, why reason) bool {
	key, ok := c.kind.index.find(uid)
	if ok {
		c.kind.loop.enqueue(key, why)
	}
	return ok
}

// missed says whether a child's event went by before the index had its instance. Asked once per instance, after
// the index has it: then no later event goes by.
func (c *children) missed(instance types.UID) bool {
	_, missed := c.unclaimed.Get(instance)
	c.unclaimed.Remove(instance)
	return missed
}

// instanceUIDs says whose child this is. Somebody may have taken the label off, or written another instance's there,
// which is drift like any other: the field manager and the owner reference tell too. What is most likely comes first.
func instanceUIDs(child *unstructured.Unstructured) []types.UID {
	var uids []types.UID
	if uid := child.GetLabels()[v1alpha1.LabelInstanceUID]; uid != "" {
		uids = append(uids, types.UID(uid))
	}
	for _, uid := range writers(child) {
		if !slices.Contains(uids, uid) {
			uids = append(uids, uid)
		}
	}
	if owners := child.GetOwnerReferences(); len(uids) == 0 && len(owners) > 0 {
		uids = append(uids, owners[0].UID)
	}
	return uids
}
