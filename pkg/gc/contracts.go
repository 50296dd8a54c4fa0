package gc

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Instances is the stored instances of one kind. Implementations are safe for concurrent use, and
// comparable: another value means that the kind's storage was replaced.
type Instances interface {
	compose.Intent
	// Get reads one instance from storage itself; NotFound if there is none.
	Get(ctx context.Context, key v1alpha1.InstanceKey) (*unstructured.Unstructured, error)
	// UIDs are those of all instances of the cluster that are stored. The read is consistent: an
	// instance that was stored before the call began, and not deleted before it ended, is among them.
	// An error is the only answer when storage could not be read whole.
	UIDs(ctx context.Context, cluster logicalcluster.Name) (sets.Set[types.UID], error)
	// Watch lists the instances of all clusters, then watches them, until ctx ends. It calls handle
	// from one goroutine: with Added for each that is listed, then once with Bookmark and nil, then
	// with every change. After a cut it calls handle with Error and nil, and lists anew.
	Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error
	// Delete asks for the instance's deletion; krop's finalizer holds it until its children are gone.
	Delete(ctx context.Context, key v1alpha1.InstanceKey) error
	// DeleteExactly is Delete of the instance with this UID; Conflict if there is another by now.
	DeleteExactly(ctx context.Context, key v1alpha1.InstanceKey, uid types.UID) error
	// Finalize takes krop's finalizer off; the object goes if it was the last.
	Finalize(ctx context.Context, instance *unstructured.Unstructured) error
	// Labelled says whether the instance has the labels that kcp shows it to claiming exports by, as far as is known.
	Labelled(ctx context.Context, key v1alpha1.InstanceKey) (bool, error)
	// Relabel stores the instance with these labels brought up to date, under its lock. It returns the instance
	// as it was and as it is; nil if it is gone.
	Relabel(ctx context.Context, key v1alpha1.InstanceKey) (before, after *unstructured.Unstructured, err error)
	// Lock excludes requests and other passes for the instance until unlock is called. It fails only
	// when ctx ends first.
	Lock(ctx context.Context, key v1alpha1.InstanceKey) (unlock func(), err error)
}

// Composer brings children to what an instance says. pkg/compose implements it.
type Composer interface {
	// Apply writes what the instance wants, wave by wave, and records status. A Conflict means that
	// somebody else has written meanwhile: read again, and start over.
	Apply(ctx context.Context, request compose.Request, intent compose.Intent) (*compose.Result, error)
	// Prune deletes what the inventory lists and a complete plan no longer wants.
	Prune(ctx context.Context, request compose.Request, plan *engine.Plan, intent compose.Intent) (*compose.Result, error)
	// Teardown takes the next steps towards deleting all children. done says that none is left.
	Teardown(ctx context.Context, request compose.Request, intent compose.Intent) (done bool, result *compose.Result, err error)
}

// Bindings knows which consumers have bound an export. Implementations are safe for concurrent use.
type Bindings interface {
	// Subscribe calls changed whenever a binding of an export appears, changes or was seen to go, from
	// now on. changed does not block.
	Subscribe(changed func(export v1alpha1.ExportKey, cluster logicalcluster.Name, bound bool))
	// Holders are the clusters that have a binding to the export, whatever its phase: one that is not Bound
	// yet, or is being deleted, is one. known is false unless they are certainly all: that must rest on
	// a consistent read that succeeded and covers every shard, never on an error, on lost rights or on a cache.
	Holders(ctx context.Context, export v1alpha1.ExportKey) (holders sets.Set[logicalcluster.Name], known bool)
}

// Ownership divides the consumer clusters among replicas. Implementations are safe for concurrent use.
type Ownership interface {
	// Owns says whether this replica looks after the cluster's instances now. For a moment two
	// replicas may both believe so: resourceVersions keep them from harm.
	Owns(cluster logicalcluster.Name) bool
	// Subscribe calls gained whenever clusters come to this replica; its argument says which.
	Subscribe(gained func(owns func(logicalcluster.Name) bool))
}

// ownsAll is the Ownership of a single replica.
type ownsAll struct{}

func (ownsAll) Owns(logicalcluster.Name) bool                  { return true }
func (ownsAll) Subscribe(func(func(logicalcluster.Name) bool)) {}

// unknownBindings is used where nobody knows of bindings: then no binding is ever known to be gone.
type unknownBindings struct{}

func (unknownBindings) Subscribe(func(v1alpha1.ExportKey, logicalcluster.Name, bool)) {}

func (unknownBindings) Holders(context.Context, v1alpha1.ExportKey) (holders sets.Set[logicalcluster.Name], known bool) {
	return nil, false
}
