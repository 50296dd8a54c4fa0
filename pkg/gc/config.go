package gc

import (
	"time"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/plane"
)

const (
	// DefaultResync is how often an instance is looked at without any event. Everything is meant to come by
	// event; this bounds how long a lost one can matter.
	DefaultResync = 10 * time.Minute

	// DefaultWorkers is how many passes run at once. A pass mostly waits for API servers, some 10 ms a call:
	// this allows about a thousand passes a second and as many calls in flight as a kcp shard takes
	// from one client without queuing them. No tenant has more than budget.Passes of them.
	DefaultWorkers = 32

	// passTimeout bounds one pass, so that a plane that hangs can't hold a worker and the instance's
	// lock for good. A slow plane's answers come in seconds.
	passTimeout = time.Minute

	// StalledAfter is how old Tick may be before the loop has to be taken for dead: two passes at their bound.
	StalledAfter = 2 * passTimeout

	// maxConflicts is how often a pass starts over at once because somebody else has written meanwhile.
	// Two writers that keep at it are told apart by backoff.
	maxConflicts = 3

	// lockPatience is how long a worker waits for an instance that a request is composing. Beyond it
	// the worker has other things to do, and comes back after lockRetry.
	lockPatience = 100 * time.Millisecond
	lockRetry    = 100 * time.Millisecond

	// Failed passes are tried again after retryFirst, and twice as long each time up to retryMost. Most
	// causes end with an event that comes first; those that don't (a quota that was raised, a plane
	// that is back) are noticed within retryMost.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Minute

	// A pass that waits for children to go is followed by another one after recheckFirst to recheckMost: for
	// children of which no DELETED event comes, since their plane's watch is cut or their claim revoked.
	recheckFirst = time.Second
	recheckMost  = 30 * time.Second

	// delayJitter spreads what failed together, as a part of each delay.
	delayJitter = 0.2
)

// Config is what the loop is made from.
type Config struct {
	Composer Composer
	Planes   plane.Planes
	Sources  plane.Sources
	// Bindings may be nil: then no consumer is ever known to have unbound.
	Bindings Bindings
	// Ownership may be nil: then this replica looks after all consumers.
	Ownership Ownership
	// StorageSince is when storage began (see StorageSince). Children that are older are of a storage
	// that was lost: that their instances aren't in this one proves nothing, and they are never swept.
	StorageSince time.Time
	// Installation identifies this krop on a host that others may share: only what carries it is swept there.
	Installation string
	// Resync is how often each instance is looked at without an event; DefaultResync if zero.
	Resync time.Duration
	// Workers is how many passes run at once; DefaultWorkers if zero.
	Workers int

	// readPause is budget.ReadPause.
	readPause time.Duration
}

func (c Config) withDefaults() Config {
	if c.Bindings == nil {
		c.Bindings = unknownBindings{}
	}
	if c.Ownership == nil {
		c.Ownership = ownsAll{}
	}
	if c.Resync == 0 {
		c.Resync = DefaultResync
	}
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	c.readPause = time.Duration(budget.ReadPause.Default) * time.Second
	return c
}
