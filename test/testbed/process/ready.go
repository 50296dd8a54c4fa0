package process

import (
	"context"
	"fmt"
	"time"
)

const (
	// pollInterval is small beside the seconds that servers take to start.
	pollInterval = 100 * time.Millisecond
	// probeTimeout bounds one probe, for servers that accept connections before they answer.
	probeTimeout = 5 * time.Second
)

// AwaitReady probes a process until the probe succeeds. It fails when the process ends, or with the last
// answer of the probe when the time is over; both show the end of the process's log.
func (p *Process) AwaitReady(ctx context.Context, timeout time.Duration, probe func(context.Context) error) error {
	deadline := time.After(timeout)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := probeOnce(ctx, probe)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return p.Failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", p.spec.Name, context.Cause(ctx))
		case <-deadline:
			return fmt.Errorf("%s is not ready after %s: %w%s", p.spec.Name, timeout, err, p.logTail())
		}
	}
}

func probeOnce(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return probe(ctx)
}
