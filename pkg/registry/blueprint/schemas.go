package blueprint

import (
	"context"
	"errors"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/plane"
)

// PlaneSchemas reads kinds from the planes themselves, anew for each compilation.
func PlaneSchemas(planes *plane.Set) func(ctx context.Context, workspace logicalcluster.Name) (kro.Schemas, error) {
	return func(ctx context.Context, workspace logicalcluster.Name) (kro.Schemas, error) {
		export := v1alpha1.ExportKey{Cluster: workspace}
		provider, err := planes.Schemas(ctx, v1alpha1.TargetProvider, export)
		if err != nil {
			return nil, err
		}
		return &compilation{ctx: ctx, planes: planes, export: export,
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
}

// Resolve implements kro.Schemas.
func (c *compilation) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	schemas, ok := c.known[target]
	if !ok {
		var err error
		if schemas, err = c.planes.Schemas(c.ctx, target, c.export); errors.Is(err, plane.ErrNoHost) {
			return kro.Kind{}, &kro.NoPlaneError{Target: target, Remedy: plane.ErrNoHost.Error()}
		} else if err != nil {
			return kro.Kind{}, err
		}
		c.known[target] = schemas
	}
	found, err := schemas.Resolve(c.ctx, gvk)
	var unknown *plane.UnknownKindError
	if errors.As(err, &unknown) {
		return kro.Kind{}, &kro.KindNotFoundError{Target: target, GVK: gvk}
	}
	if err != nil {
		return kro.Kind{}, err
	}
	return kro.Kind{GVR: found.GVR, Namespaced: found.Namespaced, Schema: found.Schema}, nil
}
