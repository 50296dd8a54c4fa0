package gc

import (
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/util/workqueue"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// eventsPerBackground is how many keys of the event lane are served for one of the background lane
// when both wait: few enough that retries and resync go on under a constant stream of events, many
// enough that a resync of thousands is hardly felt.
const eventsPerBackground = 8

// lanes is the order in which keys are worked on: events before background work (resync, retries, a
// new program), and within each lane one consumer cluster after the other, so that one with thousands
// of changes delays the others by one pass at most. It is called under the workqueue's lock.
type lanes struct {
	urgent     func(v1alpha1.InstanceKey) bool
	taken      func() // is called for each key that leaves
	events     *lane
	background *lane
	in         map[v1alpha1.InstanceKey]*lane // the lane in which a key waits
	served     int                            // keys of the event lane since the last background one
}

var _ workqueue.Queue[v1alpha1.InstanceKey] = &lanes{}

func newLanes(urgent func(v1alpha1.InstanceKey) bool, taken func()) *lanes {
	return &lanes{urgent: urgent, taken: taken, events: newLane(), background: newLane(), in: map[v1alpha1.InstanceKey]*lane{}}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int { return len(l.in) }

// Push implements workqueue.Queue.
func (l *lanes) Push(key v1alpha1.InstanceKey) {
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
	if l.in[key] == l.background && l.urgent(key) {
		l.Push(key)
	}
}

// Pop implements workqueue.Queue.
func (l *lanes) Pop() v1alpha1.InstanceKey {
	first, second := l.events, l.background
	if l.served >= eventsPerBackground {
		first, second = second, first
	}
	from := first
	key, ok := l.next(from)
	if !ok {
		from = second
		key, _ = l.next(from)
	}
	if from == l.events {
		l.served++
	} else {
		l.served = 0
	}
	delete(l.in, key)
	l.taken()
	return key
}

// next takes the lane's next key that has not changed lanes.
func (l *lanes) next(from *lane) (v1alpha1.InstanceKey, bool) {
	for {
		key, ok := from.pop()
		if !ok || l.in[key] == from {
			return key, ok
		}
	}
}

// lane is a queue per consumer cluster, served in turns.
type lane struct {
	turns   []logicalcluster.Name // clusters that have keys, each once
	waiting map[logicalcluster.Name][]v1alpha1.InstanceKey
}

func newLane() *lane {
	return &lane{waiting: map[logicalcluster.Name][]v1alpha1.InstanceKey{}}
}

func (l *lane) push(key v1alpha1.InstanceKey) {
	if len(l.waiting[key.Cluster]) == 0 {
		l.turns = append(l.turns, key.Cluster)
	}
	l.waiting[key.Cluster] = append(l.waiting[key.Cluster], key)
}

func (l *lane) pop() (key v1alpha1.InstanceKey, ok bool) {
	if len(l.turns) == 0 {
		return key, false
	}
	cluster := l.turns[0]
	l.turns = l.turns[1:]
	keys := l.waiting[cluster]
	key, keys = keys[0], keys[1:]
	if len(keys) == 0 {
		delete(l.waiting, cluster)
		return key, true
	}
	l.waiting[cluster] = keys
	l.turns = append(l.turns, cluster)
	return key, true
}
