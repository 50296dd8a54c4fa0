package blueprint

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Changes knows which kinds of which planes have changed a moment ago. pkg/gc implements it.
type Changes interface {
	// Changed says how long ago one of the kinds has changed, or may have. recently is false once all that servers
	// say of them can be believed again.
	Changed(workspace logicalcluster.Name, kinds engine.UsedKinds) (ago time.Duration, recently bool)
}

const (
	// admissionPatience is how long after a change of a kind that it uses a blueprint that doesn't compile is tried
	// again before it is refused. Whoever applies a CRD and then a blueprint would be refused for being quick.
	admissionPatience = 5 * time.Second
	admissionPoll     = 250 * time.Millisecond
)

// refusal is what is wrong with a blueprint, as a Status, and what it was compiled against.
type refusal struct {
	*apierrors.StatusError
	// outline is the blueprint's program as far as there is one: its nodes, and the kinds that were looked up.
	outline *engine.Program
	// ofClaims says that some of it is about what can be claimed, which depends on more than kinds.
	ofClaims bool
}

// refused is the last refusal of a stored blueprint.
type refused struct {
	specHash string
	*refusal
}

// upToDate is the blueprint compiled against the kinds as they are now. What is offered already is it as
// long as these are what it was compiled against. If it doesn't compile any more, it is what is offered, and
// Outdated says why.
func (r *REST) upToDate(ctx context.Context, key v1alpha1.InstanceKey, blueprint *v1alpha1.ResourceGraphDefinition) (*Compiled, error) {
	present := r.offered(blueprint)
	if present != nil {
		stands, err := r.stands(ctx, key.Cluster, blueprint, present)
		switch {
		case plane.IsTransient(err):
			return nil, err
		case stands:
			r.recovered(key, present)
			return present, nil
		case err != nil: // who may not read kinds any more will be told by what is to be published
			return present, nil
		}
	}
	compiled, err := r.compileStored(ctx, key, blueprint)
	if !apierrors.IsInvalid(err) {
		return compiled, err
	}
	if present = r.served(blueprint); present == nil {
		if present = r.restored(ctx, key, blueprint); present == nil {
			return nil, err
		}
	}
	present.Outdated = err
	return present, nil
}

// restored is the blueprint compiled against the kinds that it was compiled against before krop was started; nil if
// it can't be: then its instances are out of reach, but known to be there.
func (r *REST) restored(ctx context.Context, key v1alpha1.InstanceKey, blueprint *v1alpha1.ResourceGraphDefinition) *Compiled {
	hash := engine.SpecHash(blueprint.Spec)
	if blueprint.Status.ObservedSpecHash != hash {
		return nil // it was never offered
	}
	were, err := r.kept.recall(ctx, key, hash)
	if err != nil || were == nil {
		klog.FromContext(ctx).Info("what the blueprint was compiled against last is not known", "cluster", key.Cluster, "blueprint", key.Name, "err", err)
		return nil
	}
	compiled, err := r.compiler.Recompile(ctx, key.Cluster, blueprint, were)
	if err != nil {
		klog.FromContext(ctx).Info("the blueprint doesn't compile against what it was compiled against last", "cluster", key.Cluster, "blueprint", key.Name, "err", err)
		return nil
	}
	return compiled
}

// recovered has all instances looked at of a blueprint that did not compile and does again as it did before: a kind has
// come back, and with it may go on what could not be composed.
func (r *REST) recovered(key v1alpha1.InstanceKey, present *Compiled) {
	if _, refused := r.refusals.LoadAndDelete(key); refused {
		r.offering.Loop.Again(present.Program.Export)
	}
}

// stands says whether compiling the blueprint again would give what is offered.
func (r *REST) stands(ctx context.Context, workspace logicalcluster.Name, blueprint *v1alpha1.ResourceGraphDefinition, present *Compiled) (bool, error) {
	unchanged, changing, err := r.unchanged(ctx, workspace, present.Program.Kinds)
	if err != nil || !unchanged {
		return false, err
	}
	if !changing {
		return true, nil
	}
	// An API may have been bound anew, with the same schema but from another export.
	claims, errs, err := r.compiler.Claims(ctx, present.Program, placesIn(blueprint))
	return len(errs) == 0 && equality.Semantic.DeepEqual(claims, present.Claims), err
}

// compileStored compiles a stored blueprint, unless it was refused before and nothing has changed since.
func (r *REST) compileStored(ctx context.Context, key v1alpha1.InstanceKey, blueprint *v1alpha1.ResourceGraphDefinition) (*Compiled, error) {
	hash := engine.SpecHash(blueprint.Spec)
	if value, ok := r.refusals.Load(key); ok {
		last := value.(*refused)
		if last.specHash == hash && !last.ofClaims {
			if unchanged, _, err := r.unchanged(ctx, key.Cluster, last.outline.Kinds); unchanged && err == nil {
				return nil, last.refusal
			}
		}
	}
	compiled, err := r.compiler.Compile(ctx, key.Cluster, blueprint)
	var why *refusal
	if errors.As(err, &why) {
		r.refusals.Store(key, &refused{hash, why})
	} else if err == nil {
		r.refusals.Delete(key)
	}
	return compiled, err
}

// unchanged says whether the planes serve the kinds as they did. While some of them are changing, it takes a thorough look.
func (r *REST) unchanged(ctx context.Context, workspace logicalcluster.Name, kinds engine.UsedKinds) (unchanged, changing bool, err error) {
	schemas, err := r.compiler.Schemas(ctx, workspace)
	if err != nil {
		return false, false, registry.Unavailable("the kinds that workspace "+workspace.String()+" serves can't be read", err)
	}
	_, changing = r.changes.Changed(workspace, kinds)
	unchanged, err = schemas.Unchanged(kinds, changing)
	return unchanged, changing, err
}

// Uses says whether a blueprint may be another one after a change of the group's kinds on a plane; of all groups, if
// it is empty. The consumers' kinds are looked up on the provider's plane.
func (r *REST) Uses(key v1alpha1.InstanceKey, target v1alpha1.Target, group string) bool {
	var known []engine.UsedKinds
	r.offering.Catalog.Range(func(served *registry.Served) bool {
		if served.Export.Cluster == key.Cluster && served.Blueprint() == key.Name && served.Program != nil {
			known = append(known, served.Program.Kinds)
		}
		return true
	})
	if value, ok := r.refusals.Load(key); ok {
		known = append(known, value.(*refused).outline.Kinds)
	}
	return len(known) == 0 || slices.ContainsFunc(known, func(kinds engine.UsedKinds) bool { return kinds.On(target, group) })
}

// compile compiles a blueprint that somebody applies.
func (w *write) compile(ctx context.Context, blueprint *v1alpha1.ResourceGraphDefinition) (*Compiled, error) {
	for {
		compiled, err := w.rest.compiler.Compile(ctx, w.key.Cluster, blueprint)
		var why *refusal
		if !errors.As(err, &why) {
			return compiled, err
		}
		if ago, recently := w.rest.changes.Changed(w.key.Cluster, why.outline.Kinds); !recently || ago > admissionPatience {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(admissionPoll):
		}
	}
}
