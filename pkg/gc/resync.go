package gc

import (
	"context"
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// resyncSlots is the number of parts in which a resync goes over all instances, so that it is a
// trickle and not a wave: at the default of ten minutes, a part every ten seconds.
const resyncSlots = 60

// resync is the backstop for lost events. Each instance has a slot, by a hash that differs from start
// to start, and comes up once per resync, behind everything that an event asked for.
func (l *Loop) resync(ctx context.Context) {
	seed := maphash.MakeSeed()
	for slot := uint64(0); ; slot = (slot + 1) % resyncSlots {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.Jitter(l.config.Resync/resyncSlots, delayJitter)):
		}
		for _, kind := range l.allKinds() {
			kind.enqueueAll(routine, func(key v1alpha1.InstanceKey) bool {
				return maphash.Comparable(seed, key)%resyncSlots == slot
			})
			if slot == 0 {
				kind.lookAtAllBindings()
				kind.relabelAll(0)
			}
		}
	}
}
