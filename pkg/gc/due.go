package gc

import (
	"sync"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// maxChanges bounds what is remembered of why an instance is due. With more changes than that waiting, a
// pass is worth it without looking at each.
const maxChanges = 8

// reason is why an instance is due for a pass.
type reason struct {
	// forced passes take place whatever is known.
	forced bool
	// background passes can wait for those that an event asked for.
	background bool
	// changes are versions that were told of. If composing has taken all of them into account by the
	// time a worker gets there, there is nothing to do.
	changes []version
}

var (
	// because of an event that carries no version to compare: a deletion, a binding.
	forced = reason{forced: true}
	// because of a resync, a retry, a new program or what is only read.
	routine = reason{forced: true, background: true}
)

func changed(v version) reason { return reason{changes: []version{v}} }

// due holds the reasons of the keys that are queued, or will be after a delay. Safe for concurrent use.
type due struct {
	mutex   sync.Mutex
	reasons map[v1alpha1.InstanceKey]reason
}

func newDue() *due { return &due{reasons: map[v1alpha1.InstanceKey]reason{}} }

// add gives a key one more reason. The key has to be queued afterwards.
func (d *due) add(key v1alpha1.InstanceKey, why reason) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	old, ok := d.reasons[key]
	if !ok {
		d.reasons[key] = why
		return
	}
	merged := reason{
		forced:     old.forced || why.forced,
		background: old.background && why.background,
	}
	if len(old.changes)+len(why.changes) > maxChanges {
		merged.forced = true
	}
	if !merged.forced {
		merged.changes = append(old.changes, why.changes...)
	}
	d.reasons[key] = merged
}

// take removes and returns a key's reasons; ok is false if it has none left.
func (d *due) take(key v1alpha1.InstanceKey) (why reason, ok bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	why, ok = d.reasons[key]
	delete(d.reasons, key)
	return why, ok
}

// urgent says whether an event made the key due.
func (d *due) urgent(key v1alpha1.InstanceKey) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	why, ok := d.reasons[key]
	return ok && !why.background
}
