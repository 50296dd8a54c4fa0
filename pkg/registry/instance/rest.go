package instance

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
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

// Config is what the storage of one kind is made from.
type Config struct {
	Kind       *kind.Kind
	Store      *kind.Store
	Program    *engine.Program
	Composer   Composer
	Namespaces Namespaces
	Locks      *registry.Locks
	// Timeout bounds one write, from waiting for the instance's lock to writing the last child. It has to
	// stay below the server's own limit for requests, so that what is wrong is answered rather than cut off.
	Timeout time.Duration
	// Limits bound what an instance may be.
	Limits budget.Limits
	// Nesting refuses instances that are nested in others without end.
	Nesting registry.Nesting
	// Reads tells the loop what a request is about to read that isn't the instance's own. May be nil.
	Reads func(key v1alpha1.InstanceKey, uid types.UID, references []engine.Reference)
	// Composed tells the loop what a request has written, so that it carries on from there. May be nil.
	Composed func(key v1alpha1.InstanceKey, result *compose.Result, err error)
}

// REST is the storage of one composed kind. Reads, watches and deletes are those of the generic
// store; Create and Update compose.
type REST struct {
	*genericregistry.Store
	config  Config
	program atomic.Pointer[engine.Program]
	records *registry.Records
	gate    registry.Gate
}

// NewREST makes the storage of a kind.
func NewREST(config Config) *REST {
	r := &REST{Store: config.Store.Main, config: config, records: registry.NewRecords(config.Program.Export, config.Kind, config.Store, config.Locks)}
	r.program.Store(config.Program)
	return r
}

// Swap makes later requests compose with another program. Requests in flight finish with the one they began with.
func (r *REST) Swap(program *engine.Program) { r.program.Store(program) }

// Records is the stored instances as the loop sees them.
func (r *REST) Records() *registry.Records { return r.records }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.config.Kind.ShortNames() }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return r.config.Kind.Categories() }
