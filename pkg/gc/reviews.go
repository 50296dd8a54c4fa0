package gc

import (
	"context"
	"time"
)

// reconsiderPause is the least time between two looks at which watches are needed: a burst of bindings or of
// new inventories is one look.
const reconsiderPause = 250 * time.Millisecond

// reviews are looks at which watches are needed. It holds one token while one is asked for.
type reviews chan struct{}

func newReviews() reviews { return make(reviews, 1) }

// reconsider asks for a look.
func (r reviews) reconsider() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// follow looks whenever that is asked for, until ctx ends.
func (r reviews) follow(ctx context.Context, look func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r:
			look(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconsiderPause):
		}
	}
}
