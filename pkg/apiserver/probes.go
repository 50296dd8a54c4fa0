package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
)

const (
	// probeTimeout bounds one check. Kubelets give a probe a second by default.
	probeTimeout = 900 * time.Millisecond
	// probeMemory is how long an answer holds: anyone may probe, and must not make krop query others.
	probeMemory = time.Second
)

// Probe is a named check that asks one question, at most once a second however often it is called.
func Probe(name string, ask func(context.Context) error) healthz.HealthChecker {
	remembered := &memory{ask: ask}
	return healthz.NamedCheck(name, func(r *http.Request) error { return remembered.answer(r.Context()) })
}

type memory struct {
	ask func(context.Context) error

	mu    sync.Mutex
	asked time.Time
	last  error
}

func (m *memory) answer(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) < probeMemory {
		return m.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	m.last, m.asked = m.ask(ctx), time.Now()
	return m.last
}

// Ticking checks that a loop still runs: its last tick is younger than the limit.
func Ticking(name string, limit time.Duration, lastTick func() time.Time) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error {
		if age := time.Since(lastTick()); age > limit {
			return fmt.Errorf("the last tick was %s ago", age.Round(time.Second))
		}
		return nil
	})
}

func catalogSynced(catalog Catalog) healthz.HealthChecker {
	return healthz.NamedCheck("catalog", func(*http.Request) error {
		if !catalog.Synced() {
			return errors.New("the blueprints are still being loaded")
		}
		return nil
	})
}

// exportsServed fails while exports that were served before a restart can't be, for want of somebody's
// answer: another replica may have had it. Blueprints that don't compile any more are their providers' to
// repair, and no reason for krop not to serve the others.
func exportsServed(catalog Catalog) healthz.HealthChecker {
	return healthz.NamedCheck("exports", func(*http.Request) error {
		if awaited := catalog.Awaited(); awaited > 0 {
			return fmt.Errorf("%d exports can't be served before something can be reached again", awaited)
		}
		return nil
	})
}
