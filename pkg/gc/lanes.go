package gc

import (
	"math"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/util/workqueue"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// eventsPerBackground is how many keys of the event lane are served for one of the background lane
// when both wait: few enough that retries and resync go on under a constant stream of events, many
// enough that a resync of thousands is hardly felt.
const eventsPerBackground = 8

// nudge is no instance's key. It wakes a worker that sleeps, when keys that wait may be served that could not be before:
// workers are woken by what is added, and those were added long ago.
var nudge v1alpha1.InstanceKey

// lanes is the order in which keys are worked on: events before background work (resync, retries, a
// new program, what is only read), and within each lane one tenant after the other, so that one with thousands
// of changes delays the others by one pass at most. No consumer cluster has more than a share of the workers, and a smaller
// one in the background, nor has an export there: passes load API servers, which everybody waits for. The keys beyond
// it wait here, where others overtake them.
//
// The workqueue calls it under its lock, but for left and hasMoved. Safe for concurrent use.
type lanes struct {
	urgent func(v1alpha1.InstanceKey) bool
	taken  func() // is called for each key that leaves

	mutex      sync.Mutex
	clusters   places[logicalcluster.Name]
	events     *lane
	background *lane
	in         map[v1alpha1.InstanceKey]*lane // the lane in which a key waits
	from       map[v1alpha1.InstanceKey]*lane // the lane in which a key waited that a worker has
	served     int                            // keys of the event lane since the last background one
	nudged     bool
	moved      bool
}

var _ workqueue.Queue[v1alpha1.InstanceKey] = &lanes{}

// shares are how many workers one tenant may have.
type shares struct{ cluster, clusterInBackground, exportInBackground int }

func newLanes(most shares, urgent func(v1alpha1.InstanceKey) bool, taken func()) *lanes {
	return &lanes{
		urgent: urgent, taken: taken, clusters: newPlaces[logicalcluster.Name](most.cluster),
		// What one consumer asks for says nothing of the others of its export, but a new program comes to all of them.
		events:     newLane(func(v1alpha1.InstanceKey) v1alpha1.ExportKey { return v1alpha1.ExportKey{} }, math.MaxInt, most.cluster),
		background: newLane(func(key v1alpha1.InstanceKey) v1alpha1.ExportKey { return key.Export }, most.exportInBackground, most.clusterInBackground),
		in:         map[v1alpha1.InstanceKey]*lane{}, from: map[v1alpha1.InstanceKey]*lane{},
	}
}

// Len implements workqueue.Queue. It is 0, and workers sleep, while none of those that wait may have one.
func (l *lanes) Len() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	n := 0
	if _, _, ok := l.next(l.events, l.background); ok {
		n = len(l.in)
	}
	if l.nudged {
		n++
	}
	return n
}

// Push implements workqueue.Queue.
func (l *lanes) Push(key v1alpha1.InstanceKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if key == nudge {
		l.nudged = true
		return
	}
	l.push(key)
}

func (l *lanes) push(key v1alpha1.InstanceKey) {
	to := l.background
	if l.urgent(key) {
		to = l.events
	}
	l.in[key] = to
	to.push(key)
}

// Touch implements workqueue.Queue. A key that waits in the background and has become urgent changes
// lanes; its old place is skipped when its turn comes.
func (l *lanes) Touch(key v1alpha1.InstanceKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.in[key] == l.background && l.urgent(key) {
		l.push(key)
		l.moved = true
	}
}

// hasMoved says whether a key has changed lanes since this was last asked. It may be served now, which no worker has heard of.
func (l *lanes) hasMoved() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	moved := l.moved
	l.moved = false
	return moved
}

// Pop implements workqueue.Queue.
func (l *lanes) Pop() v1alpha1.InstanceKey {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.nudged {
		l.nudged = false
		return nudge
	}
	first, second := l.events, l.background
	if l.served >= eventsPerBackground {
		first, second = second, first
	}
	from, turn, ok := l.next(first, second)
	if !ok {
		return nudge // the workqueue doesn't ask while Len is 0
	}
	key := from.pop(turn)
	if from == l.events {
		l.served++
	} else {
		l.served = 0
	}
	delete(l.in, key)
	l.from[key] = from
	l.clusters.take(key.Cluster)
	l.taken()
	return key
}

// next finds whose turn it is, in the first lane that has somebody who may have a worker.
func (l *lanes) next(order ...*lane) (*lane, turn, bool) {
	for _, from := range order {
		waits := func(key v1alpha1.InstanceKey) bool { return l.in[key] == from }
		if turn, ok := from.next(l.clusters.free, waits); ok {
			return from, turn, true
		}
	}
	return nil, turn{}, false
}

// left takes back what a key had that a worker is done with, and says whether there may be work for two workers now:
// one key of the same cluster and another of the same export. The one that is done will look for one of them itself.
func (l *lanes) left(key v1alpha1.InstanceKey) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	ofCluster := l.clusters.leave(key.Cluster)
	ofExport, ofClusterThere := l.from[key].left(key)
	delete(l.from, key)
	return (ofCluster || ofClusterThere) && ofExport && len(l.in) > 0
}
