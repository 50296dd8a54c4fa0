package blueprint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Compiler compiles blueprints against the kinds that their workspace serves. Safe for concurrent use.
type Compiler struct {
	// Schemas reads what the planes of a workspace's blueprints serve, as it is now.
	Schemas func(ctx context.Context, workspace logicalcluster.Name) (Schemas, error)
	// Claims derives what consumers will be asked for. Resources that can't be claimed are field
	// errors, at the place in the blueprint that at says; the error says that it could not be found out.
	Claims func(ctx context.Context, program *engine.Program, at func(v1alpha1.NodeID) *field.Path) ([]v1alpha1.PermissionClaim, field.ErrorList, error)
	// Origins says of which exports the kinds are that a program writes. May be nil: then none is of any.
	Origins func(ctx context.Context, program *engine.Program) (map[v1alpha1.NodeID]v1alpha1.ExportKey, error)
	// Installation identifies this krop on a host that others may share.
	Installation string
	// Limits bound what one blueprint may ask for.
	Limits kro.Limits

	once  sync.Once
	queue *turns
}

func (c *Compiler) turns() *turns {
	c.once.Do(func() { c.queue = newTurns(c.Limits, budget.Cores) })
	return c.queue
}

// Compiled is a blueprint that compiles, with what its consumers will be asked for.
type Compiled struct {
	Program *engine.Program
	Claims  []v1alpha1.PermissionClaim
	// Outdated is why the blueprint doesn't compile any more; nil if it does. The program is the last that did.
	Outdated error

	kinds []keptKind // that it was compiled against; nil if it wasn't compiled just now
}

// Compile compiles a blueprint of the workspace. What is wrong with it comes back as one Invalid
// Status with all causes, a *refusal; anything else says that it could not be known now.
func (c *Compiler) Compile(ctx context.Context, workspace logicalcluster.Name, blueprint *v1alpha1.ResourceGraphDefinition) (*Compiled, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Limits.Of(budget.CompileSeconds))*time.Second)
	defer cancel()
	schemas, err := c.Schemas(ctx, workspace)
	if err != nil {
		return nil, registry.Unavailable(fmt.Sprintf("the kinds that workspace %s serves can't be read", workspace), err)
	}
	noting := &noting{Schemas: schemas, found: map[lookup]kro.Kind{}}
	program, err := c.program(ctx, workspace, blueprint, noting)
	if err != nil {
		return nil, err
	}
	claims, errs, err := c.Claims(ctx, program, placesIn(blueprint))
	if err != nil {
		return nil, registry.Unavailable(fmt.Sprintf("what workspace %s has bound and exports can't be read", workspace), err)
	}
	if len(errs) > 0 {
		return nil, &refusal{invalid(blueprint.Name, errs), program, true}
	}
	if err := c.addOrigins(ctx, program); err != nil {
		return nil, err
	}
	return &Compiled{Program: program, Claims: claims, kinds: noting.noted()}, nil
}

// Recompile compiles a stored blueprint against kinds as they were, when it was published.
func (c *Compiler) Recompile(ctx context.Context, workspace logicalcluster.Name, blueprint *v1alpha1.ResourceGraphDefinition, were Schemas) (*Compiled, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Limits.Of(budget.CompileSeconds))*time.Second)
	defer cancel()
	program, err := c.program(ctx, workspace, blueprint, were)
	if err != nil {
		return nil, err
	}
	if err := c.addOrigins(ctx, program); err != nil {
		return nil, err
	}
	return &Compiled{Program: program, Claims: blueprint.Status.PermissionClaims}, nil
}

// program is the blueprint's, without the origins of kinds.
func (c *Compiler) program(ctx context.Context, workspace logicalcluster.Name, blueprint *v1alpha1.ResourceGraphDefinition, schemas Schemas) (*engine.Program, error) {
	work, err := c.turns().begin(ctx, workspace)
	if err != nil {
		return nil, registry.Refused(err)
	}
	defer work.end()
	schemas = &takingTurns{Schemas: schemas, work: work}
	program, errs := kro.Compile(blueprint, v1alpha1.ExportKey{Cluster: workspace}, schemas, c.Limits)
	if budget.IsBusy(work.failed) {
		return nil, registry.Refused(work.failed)
	}
	if unknown := notKnown(errs); unknown != nil {
		return nil, registry.Unavailable("the blueprint can't be compiled now: the kinds that "+unread(blueprint, errs)+" can't be read", unknown)
	}
	if len(errs) > 0 {
		outline := c.outline(ctx, workspace, blueprint, schemas)
		unclaimable := c.unclaimable(ctx, outline, placesIn(blueprint))
		return nil, &refusal{invalid(blueprint.Name, append(errs, unclaimable...)), outline, len(unclaimable) > 0}
	}
	program.Export.Name, program.Installation = program.CRD.Name, c.Installation
	program.Kinds = schemas.Kinds()
	return program, nil
}

// outline is what is known of a blueprint that doesn't compile: its resources as far as their kinds are known, and
// which exports these are of, if that can be found out now.
func (c *Compiler) outline(ctx context.Context, workspace logicalcluster.Name, blueprint *v1alpha1.ResourceGraphDefinition, schemas Schemas) *engine.Program {
	outline := &engine.Program{
		Blueprint: blueprint.Name,
		Export:    v1alpha1.ExportKey{Cluster: workspace, Name: blueprint.Status.ExportedAPI},
		CRD:       &apiextensionsv1.CustomResourceDefinition{},
		Nodes:     kro.Outline(blueprint, schemas, c.Limits),
		Kinds:     schemas.Kinds(),
	}
	if err := c.addOrigins(ctx, outline); err != nil {
		klog.FromContext(ctx).V(2).Info("what a blueprint that doesn't compile is composed of is not known", "blueprint", blueprint.Name, "err", err)
	}
	return outline
}

// unclaimable is what else is wrong with a blueprint that doesn't compile: resources that no claim can
// reach. If that can't be found out now, the answer goes without it.
func (c *Compiler) unclaimable(ctx context.Context, outline *engine.Program, at func(v1alpha1.NodeID) *field.Path) field.ErrorList {
	_, errs, err := c.Claims(ctx, outline, at)
	if err != nil {
		return nil
	}
	return errs
}

// placesIn says where a blueprint has a resource.
func placesIn(blueprint *v1alpha1.ResourceGraphDefinition) func(v1alpha1.NodeID) *field.Path {
	return func(id v1alpha1.NodeID) *field.Path {
		return field.NewPath("spec", "resources").Index(slices.IndexFunc(blueprint.Spec.Resources, func(r v1alpha1.Resource) bool {
			return r.ID == string(id)
		}))
	}
}

func invalid(name string, errs field.ErrorList) *apierrors.StatusError {
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("ResourceGraphDefinition").GroupKind(), name, errs)
}

// notKnown is those of the errors that say nothing about the blueprint: a plane could not be asked.
func notKnown(errs field.ErrorList) error {
	return errs.Filter(func(err error) bool {
		var each *field.Error
		return !errors.As(err, &each) || each.Type != field.ErrorTypeInternal
	}).ToAggregate()
}

// unread names the planes that could not be asked for kinds: those of the resources that the errors are about.
func unread(blueprint *v1alpha1.ResourceGraphDefinition, errs field.ErrorList) string {
	resources := engine.Defaulted(blueprint.Spec).Resources
	var planes []string
	for _, err := range errs {
		var i int
		if _, failed := fmt.Sscanf(err.Field, "spec.resources[%d]", &i); failed != nil || err.Type != field.ErrorTypeInternal || i >= len(resources) {
			continue
		}
		if name := "the " + string(resources[i].Target) + " plane serves"; !slices.Contains(planes, name) {
			planes = append(planes, name)
		}
	}
	if len(planes) == 0 {
		return "its planes serve"
	}
	return strings.Join(planes, " and that ")
}
