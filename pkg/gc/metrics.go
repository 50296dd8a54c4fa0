package gc

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	// Depth and latency of the queue are upstream's workqueue metrics, under the name "gc".
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

// result is how a pass ended; it is the only label, so that metrics don't grow with tenants.
type result string

const (
	resultSynced   result = "synced"   // composed without an error
	resultWaiting  result = "waiting"  // done as far as possible; children are still going
	resultFinished result = "finished" // torn down, and released
	resultGone     result = "gone"     // not stored any more
	resultEcho     result = "echo"     // nothing had changed that isn't taken into account
	resultLocked   result = "locked"   // a request was at it; put off
	resultFailed   result = "failed"   // will be retried
)

var (
	passes = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "krop", Subsystem: "gc", Name: "passes_total",
		Help:           "Passes of the loop over an instance, by how they ended.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})

	passDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Namespace: "krop", Subsystem: "gc", Name: "pass_duration_seconds",
		Help:           "Duration of passes that read an instance.",
		Buckets:        metrics.ExponentialBuckets(0.001, 2, 16),
		StabilityLevel: metrics.ALPHA,
	})

	swept = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "krop", Subsystem: "gc", Name: "orphans_deleted_total",
		Help:           "Children deleted because their instance was proven not to exist.",
		StabilityLevel: metrics.ALPHA,
	})

	registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(passes, passDuration, swept) })
)

func observe(ended result, began time.Time) {
	passes.WithLabelValues(string(ended)).Inc()
	if ended != resultEcho && ended != resultLocked {
		passDuration.Observe(time.Since(began).Seconds())
	}
}
