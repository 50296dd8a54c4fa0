package instance

import "time"

// applyReserve is what preflight leaves of a write's time for storing the instance and for writing its
// children, of which some seconds write a good many. A short time keeps a quarter.
const applyReserve = 5 * time.Second

// deadlines is until when the steps of one write may take. They share one time, however often storing has to be
// tried: the server gives up on a request as a whole, and what is wrong can be answered before that only.
type deadlines struct {
	// lock is when another write of the instance has been waited for long enough.
	lock time.Time
	// preflight ends when there is just enough left to act on what it finds.
	preflight time.Time
	// apply ends the write.
	apply time.Time
}

func newDeadlines(now time.Time, total time.Duration) deadlines {
	return deadlines{
		lock:      now.Add(total / 2),
		preflight: now.Add(total - min(applyReserve, total/4)),
		apply:     now.Add(total),
	}
}
