package compose

import (
	"context"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

const (
	// fanOut is how many children of one request are read, checked or written at once. Half of what a plane
	// takes from krop as a whole, so that one large instance leaves room for another.
	fanOut = 32
	// maxAttempts is how often one child is checked or written within one call. More than one is needed
	// only when somebody else changes it meanwhile; then the loop, with its backoff, is the better place to go on.
	maxAttempts = 4
	// recordTimeout bounds the last record of a call whose own time is up: what has been written by then is
	// worth telling.
	recordTimeout = 5 * time.Second
)

// Request is one instance to be composed.
type Request struct {
	// Program to compose with. Teardown and Prune need its Export, and of its nodes the versions.
	Program *engine.Program
	// Consumer is the instance's logical cluster.
	Consumer logicalcluster.Name
	// Instance is the instance as it is stored, or about to be. Its status.composition is the inventory.
	// It is not changed.
	Instance *unstructured.Unstructured
	// DryRun says that the instance is not going to be stored. Preflight then answers with the status that
	// it would have once all is applied, and otherwise with what is true when it is stored.
	DryRun bool
	// Reads is called with what the instance only refers to, before that is read; nil if nobody wants to know.
	// Apply reads the planes themselves, so that what changes before the call is seen.
	Reads func([]engine.Reference)
}

// Result is what composing has come to.
type Result struct {
	// Instance is a copy of the request's instance with status (and, after Preflight, the finalizer) set.
	Instance *unstructured.Unstructured
	// Plan is the last plan that was made; nil where none was needed.
	Plan *engine.Plan
	// Warnings are for the Warning header: what went wrong after the instance was stored, and what
	// could not be checked before.
	Warnings []string
	// Err is the first failure that is worth a retry, nil if everything that can be written is as wanted.
	Err error
}

// Intent stores what composing is about to do, and what it has done. pkg/registry
// implements it.
type Intent interface {
	// Record writes the instance's status under its resourceVersion and returns the instance as
	// stored. It fails with Conflict if somebody else has written since; then composing stops.
	// A record that changes nothing writes nothing.
	Record(ctx context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Options change how a Composer works. The zero value is right for a server.
type Options struct {
	// Clock gives conditions their times; the system's if nil.
	Clock clock.PassiveClock
}

// Composer acts on plans. Safe for concurrent use; what excludes two calls for one instance from each
// other within a process is their callers' lock.
type Composer struct {
	planes plane.Planes
	clock  clock.PassiveClock
}

// New makes a composer.
func New(planes plane.Planes, options Options) *Composer {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Composer{planes: planes, clock: options.Clock}
}
