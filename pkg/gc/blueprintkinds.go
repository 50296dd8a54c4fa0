package gc

import (
	"context"
	"time"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func workspaceOf(key v1alpha1.InstanceKey) kindPlane {
	return kindPlane{target: v1alpha1.TargetProvider, workspace: key.Cluster}
}

// follow has blueprints looked at whose kinds change on a plane.
func (b *Blueprints) follow(ctx context.Context, at kindPlane) {
	if b.config.Kinds != nil {
		b.config.Kinds.follow(ctx, at, b.kindsChanged)
	}
}

// kindsChanged makes the blueprints due that use what has changed.
func (b *Blueprints) kindsChanged(what change) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for key := range b.known {
		if !what.serves(key.Cluster) || !b.config.Uses(key, what.target, what.group) {
			continue
		}
		if !what.unseen {
			b.changing[key] = time.Now()
		}
		b.queue.Add(key)
	}
}

// lookAgain has a blueprint looked at again whose kinds have changed a moment ago: after as long as it has
// been since, so that the pauses double.
func (b *Blueprints) lookAgain(key v1alpha1.InstanceKey) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	since, ok := b.changing[key]
	if !ok {
		return
	}
	elapsed := time.Since(since)
	if elapsed > settleTime {
		delete(b.changing, key)
		return
	}
	b.queue.AddAfter(key, max(elapsed, settleFirst))
}
