package instance

import (
	"context"
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// Composer is what the way of a write asks of pkg/compose.
type Composer interface {
	Preflight(ctx context.Context, request compose.Request) (*compose.Result, error)
	Apply(ctx context.Context, request compose.Request, intent compose.Intent) (*compose.Result, error)
}

// Namespaces says whether a namespace of a consumer's workspace can take new instances.
type Namespaces interface {
	// Check fails with a Status if the namespace is known not to exist, or to be terminating.
	Check(ctx context.Context, export v1alpha1.ExportKey, consumer logicalcluster.Name, namespace string) error
	// Forget says that what was known of the namespace may have changed.
	Forget(export v1alpha1.ExportKey, consumer logicalcluster.Name, namespace string)
}

// REST is the storage of one composed kind. Reads, watches and deletes are those of the generic
// store; Create and Update compose.
type REST struct {
	*genericregistry.Store
	kind    *kind.Kind
	config  *Builder // that it was made with
	program atomic.Pointer[engine.Program]
	records *registry.Records
	gate    registry.Gate
}

func newREST(config *Builder, store *kind.Store, program *engine.Program) *REST {
	r := &REST{
		Store: store.Main, kind: store.Kind, config: config,
		records: registry.NewRecords(program.Export, store.Kind, store, config.Locks),
	}
	r.program.Store(program)
	return r
}

// Swap makes later requests compose with another program. Requests in flight finish with the one they began with.
func (r *REST) Swap(program *engine.Program) { r.program.Store(program) }

// Records is the stored instances as the loop sees them.
func (r *REST) Records() *registry.Records { return r.records }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.kind.ShortNames() }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return r.kind.Categories() }
