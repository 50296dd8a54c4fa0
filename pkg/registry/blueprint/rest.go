package blueprint

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

var (
	_ rest.StandardStorage      = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.CategoriesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// REST is the storage of ResourceGraphDefinitions. Create and Update compile and publish; Delete
// refuses while instances exist.
type REST struct {
	*genericregistry.Store
	kind     *kind.Kind
	export   v1alpha1.ExportKey
	records  *registry.Records
	locks    *registry.Locks
	compiler *Compiler
	offering *Offering
	routing  Routing
	changes  Changes
	kept     *kept
	refusals sync.Map // v1alpha1.InstanceKey -> *refused: of what is stored and doesn't compile
}

// Routing knows whether kcp routes a kind to krop.
type Routing interface {
	// Routed asks through a consumer's binding. bound is false while there is none; err says that the
	// question did not come to krop.
	Routed(ctx context.Context, export v1alpha1.ExportKey, resource schema.GroupVersionResource) (bound bool, err error)
}

// Config is what the storage of blueprints is made from.
type Config struct {
	Kind     *kind.Kind
	Store    *kind.Store
	Export   v1alpha1.ExportKey
	Locks    *registry.Locks
	Compiler *Compiler
	Offering *Offering
	Routing  Routing
	Changes  Changes
	// Values remembers what blueprints were compiled against.
	Values Values
}

// NewREST makes the storage of blueprints.
func NewREST(config Config) *REST {
	return &REST{
		Store:    config.Store.Main,
		kind:     config.Kind,
		export:   config.Export,
		records:  registry.NewRecords(config.Export, config.Kind, config.Store, config.Locks),
		locks:    config.Locks,
		compiler: config.Compiler,
		offering: config.Offering,
		routing:  config.Routing,
		changes:  config.Changes,
		kept:     &kept{values: config.Values},
	}
}

// Records is the stored blueprints as the loop sees them.
func (r *REST) Records() *registry.Records { return r.records }

// ShortNames implements rest.ShortNamesProvider.
func (r *REST) ShortNames() []string { return r.kind.ShortNames() }

// Categories implements rest.CategoriesProvider.
func (r *REST) Categories() []string { return r.kind.Categories() }

// Create compiles a blueprint, stores and publishes it.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	blueprint := registry.AsObject(object)
	if blueprint.GetName() == "" && blueprint.GetGenerateName() != "" {
		blueprint.SetName(names.SimpleNameGenerator.GenerateName(blueprint.GetGenerateName()))
	}
	work, err := r.begin(ctx, blueprint.GetName(), dryrun.IsDryRun(options.DryRun))
	if err != nil {
		return nil, err
	}
	defer work.unlock()
	stored, err := r.Store.Create(ctx, blueprint,
		registry.AdmitCreate(validate, func(ctx context.Context) error { return work.admit(ctx, blueprint, nil) }), options)
	if err != nil {
		return nil, work.explained(ctx, blueprint, err)
	}
	return work.publish(ctx, registry.AsObject(stored))
}

// Update serves PUT and every kind of PATCH, and the create that a server-side apply may be.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	work, err := r.begin(ctx, name, dryrun.IsDryRun(options.DryRun))
	if err != nil {
		return nil, false, err
	}
	defer work.unlock()
	captured := &registry.CapturedInfo{UpdatedObjectInfo: info}
	stored, created, err := r.Store.Update(ctx, name, captured,
		registry.AdmitCreate(createValidation, func(ctx context.Context) error { return work.admit(ctx, captured.Object, nil) }),
		registry.AdmitUpdate(updateValidation, func(ctx context.Context, old *unstructured.Unstructured) error {
			if old.GetDeletionTimestamp() != nil {
				return nil
			}
			return work.admit(ctx, captured.Object, old)
		}),
		forceAllowCreate, options)
	if err != nil {
		return nil, false, work.explained(ctx, captured.Object, err)
	}
	if registry.AsObject(stored).GetDeletionTimestamp() != nil {
		return stored, created, nil
	}
	answer, err := work.publish(ctx, registry.AsObject(stored))
	return answer, created, err
}

func (r *REST) begin(ctx context.Context, name string, dryRun bool) (*write, error) {
	key, err := registry.KeyIn(ctx, r.export, name)
	if err != nil {
		return nil, err
	}
	unlock, err := registry.LockForRequest(ctx, ctx, r.locks, key, "another write of blueprint "+name+" is still being published")
	if err != nil {
		return nil, err
	}
	return &write{rest: r, key: key, dryRun: dryRun, unlock: unlock}, nil
}
