package compose

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/engine"
)

// Request is one instance to be composed.
type Request struct {
	// Program to compose with.
	Program *engine.Program
	// Consumer is the instance's logical cluster.
	Consumer logicalcluster.Name
	// Instance is the instance as it is stored, or about to be. Its status.composition is the inventory.
	// It is not changed.
	Instance *unstructured.Unstructured
}

// Result is what composing has come to.
type Result struct {
	// Instance is a copy of the request's instance with status (and, after Preflight, the finalizer) set.
	Instance *unstructured.Unstructured
	// Plan is the last plan that was made.
	Plan *engine.Plan
	// Warnings are for the Warning header: what went wrong after the instance was stored.
	Warnings []string
	// Err is the first failure that is worth a retry, nil if everything that can be written is as wanted.
	Err error
}

// Intent stores what composing is about to do, and what it has done. It is implemented by
// pkg/registry/instance.
type Intent interface {
	// Record writes the instance's status under its resourceVersion and returns the instance as
	// stored. It fails with Conflict if somebody else has written since; then composing stops.
	// A record that changes nothing writes nothing.
	Record(ctx context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error)
}
