package apiserver

import (
	"strconv"

	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// lanes are the levels of writes, by the height of the kind that is written (registry.Catalog.Height).
//
// A child may itself be an instance that krop serves: then the write of its parent holds a place while that of the
// child, which comes back by way of kcp, waits for one. Were places of one kind only, parents in all of them would wait
// for children that get none. So each height has places of its own. A write waits for writes of lower
// kinds only, and those of height 0 wait for none of krop's: they end, so those above them do.
//
// The height follows from the blueprints alone. Nothing that a request says of itself would do: the certificate is the
// shard's for all, and headers, field managers and marks are anybody's to choose. Who asks for nothing
// but high kinds gains no more than those places, in which each workspace has its turn as anywhere.
//
// Each height has half of the places of the one below, so that all together are less than twice the limit: one write
// up there is several below.
type lanes []*level

// newLanes makes a level for each height that there can be.
func newLanes(factory fq.QueueSetFactory, limits budget.Limits) (lanes, error) {
	all := make(lanes, 0, limits.Of(budget.Nesting)+1)
	for height := range limits.Of(budget.Nesting) + 1 {
		name := levelWrites
		if height > 0 {
			name += "-" + strconv.Itoa(height)
		}
		lane, err := newQueuedLevel(factory, name, halved(limits.Of(budget.Writes), height))
		if err != nil {
			return nil, err
		}
		lane.longest = longestWriteWait
		lane.shared(limits, budget.Writes, budget.WritesPerConsumer, height)
		all = append(all, lane)
	}
	return all, nil
}

// halved is the limit at a height.
func halved(limit, height int) int { return max(1, limit>>height) }

// laneOf is the level for writes of an export's kind.
func (f *fairness) laneOf(export v1alpha1.ExportKey) *level {
	height := 0
	if f.height != nil {
		height = min(f.height(export), len(f.writes)-1)
	}
	return f.writes[height]
}
