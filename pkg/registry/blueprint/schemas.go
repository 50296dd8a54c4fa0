package blueprint

import (
	"context"
	"errors"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/plane"
)

// Schemas are the kinds of one compilation. They remember what was asked of them.
type Schemas interface {
	kro.Schemas
	// Kinds are those that were looked up, and what the planes said of them.
	Kinds() engine.UsedKinds
	// Unchanged says whether the planes still say of kinds what they said earlier. A thorough look doesn't
	// take an unchanged document for proof: for some seconds after a change, servers tell in one place what they don't
	// tell in another.
	Unchanged(kinds engine.UsedKinds, thorough bool) (bool, error)
}

// PlaneSchemas reads kinds from the planes themselves, anew for each compilation.
func PlaneSchemas(planes *plane.Set) func(ctx context.Context, workspace logicalcluster.Name) (Schemas, error) {
	return func(ctx context.Context, workspace logicalcluster.Name) (Schemas, error) {
		export := v1alpha1.ExportKey{Cluster: workspace}
		provider, err := planes.Schemas(ctx, v1alpha1.TargetProvider, export)
		if err != nil {
			return nil, err
		}
		return &compilation{ctx: ctx, planes: planes, export: export, used: map[lookup]engine.UsedKind{},
			known: map[v1alpha1.Target]*plane.Schemas{v1alpha1.TargetProvider: provider}}, nil
	}
}

// compilation is the kinds of one compilation. It keeps the request's context, since kro asks
// without one; it lives no longer than the request.
type compilation struct {
	ctx    context.Context
	planes *plane.Set
	export v1alpha1.ExportKey
	known  map[v1alpha1.Target]*plane.Schemas
	used   map[lookup]engine.UsedKind
}

// lookup is one question.
type lookup struct {
	target v1alpha1.Target
	gvk    schema.GroupVersionKind
}

// Resolve implements kro.Schemas.
func (c *compilation) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	used := engine.UsedKind{Target: target, GVK: gvk}
	found, err := c.resolve(&used)
	if err == nil || isNotServed(err) {
		c.used[lookup{target, gvk}] = used
	}
	if err != nil {
		return kro.Kind{}, err
	}
	return kro.Kind{GVR: found.GVR, Namespaced: found.Namespaced, Schema: found.Schema}, nil
}

// resolve looks a kind up, and writes down what identifies the answer.
func (c *compilation) resolve(used *engine.UsedKind) (*plane.ResourceType, error) {
	schemas, err := c.on(used.Target)
	if err != nil {
		return nil, err
	}
	used.Document = schemas.Document(used.GVK.GroupVersion())
	found, err := schemas.Resolve(c.ctx, used.GVK)
	var unknown *plane.UnknownKindError
	if errors.As(err, &unknown) {
		return nil, &kro.KindNotFoundError{Target: used.Target, GVK: used.GVK}
	}
	if err != nil {
		return nil, err
	}
	used.Hash = found.Hash
	return found, nil
}

// on is the kinds of a plane, as they were when they were first asked for.
func (c *compilation) on(target v1alpha1.Target) (*plane.Schemas, error) {
	if schemas, ok := c.known[target]; ok {
		return schemas, nil
	}
	schemas, err := c.planes.Schemas(c.ctx, target, c.export)
	if errors.Is(err, plane.ErrNoHost) {
		return nil, &kro.NoPlaneError{Target: target, Remedy: plane.ErrNoHost.Error()}
	}
	if err != nil {
		return nil, err
	}
	c.known[target] = schemas
	return schemas, nil
}

// isNotServed says whether it is known that there is no such kind, as opposed to not knowing.
func isNotServed(err error) bool {
	var notFound *kro.KindNotFoundError
	var noPlane *kro.NoPlaneError
	return errors.As(err, &notFound) || errors.As(err, &noPlane)
}

// Kinds implements Schemas.
func (c *compilation) Kinds() engine.UsedKinds {
	kinds := make(engine.UsedKinds, 0, len(c.used))
	for _, used := range c.used {
		kinds = append(kinds, used)
	}
	return kinds
}

// Unchanged implements Schemas. Of what hasn't changed, it reads no more than the index of each plane.
func (c *compilation) Unchanged(kinds engine.UsedKinds, thorough bool) (bool, error) {
	for _, was := range kinds {
		if !thorough && c.hasDocument(was) {
			continue
		}
		is := engine.UsedKind{Target: was.Target, GVK: was.GVK}
		if _, err := c.resolve(&is); err != nil && !isNotServed(err) {
			return false, err
		}
		if is.Hash != was.Hash {
			return false, nil
		}
	}
	return true, nil
}

// hasDocument says whether the plane still says of the kind's group version what it said before.
func (c *compilation) hasDocument(kind engine.UsedKind) bool {
	schemas, err := c.on(kind.Target)
	return err == nil && kind.Document != "" && schemas.Document(kind.GVK.GroupVersion()) == kind.Document
}
