package apiserver

import (
	"math"

	"go.opendefense.cloud/krop/pkg/budget"
)

// waited is what is said of a request that waited for its turn in vain, or could not even wait.
const waited = "more were asked for, and this one has waited too long or too many others wait"

// shared bounds what one cluster may have of a level. What a slow plane holds up is then that cluster's alone:
// without it, all places could be taken by one, and turns come only when something ends.
// It is halved as often as the level's own limit.
func (l *level) shared(limits budget.Limits, bound, share *budget.Bound, halvings int) {
	l.bound, l.share = bound, share
	each := halved(limits.Of(share), halvings)
	waiting := max(0, handSize*queueLength-each) // as many as could wait in the queues
	l.shares = budget.NewTurns(math.MaxInt, each, waiting)
	l.arrivals = newArrivals(limits, halvings)
}
