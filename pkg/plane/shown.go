package plane

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Claims knows what kcp shows of a workspace through the claims of an export.
type Claims interface {
	// Shown is not empty if kcp shows all objects of the resource that the workspace lets the export see. It is another
	// one after each change of what the workspace accepts.
	Shown(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name, resource schema.GroupResource) (string, error)
}

// errPartlyShown is said of a list that kcp has answered, and that may lack some objects.
var errPartlyShown = apierrors.NewServiceUnavailable("kcp doesn't show all of them through the permission claim yet")

// claimed is a consumer's plane. Children may go because of what a list lacks, so no list is taken for one that
// kcp may have answered while it was about to show or hide what it is of.
type claimed struct {
	*server
	claims Claims
	export v1alpha1.ExportKey
}

// List implements Plane.
func (c *claimed) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, selector labels.Selector, limit int) ([]*unstructured.Unstructured, error) {
	before, err := c.shown(ctx, gvr.GroupResource())
	if err != nil {
		return nil, err
	}
	found, err := c.server.List(ctx, gvr, namespace, selector, limit)
	if err != nil {
		return nil, err // also of what isn't claimed, or not accepted, which kcp says better
	}
	after, err := c.shown(ctx, gvr.GroupResource())
	if err != nil {
		return nil, err
	}
	if before == "" || before != after {
		return nil, errPartlyShown
	}
	return found, nil
}

func (c *claimed) shown(ctx context.Context, resource schema.GroupResource) (shown string, err error) {
	err = c.within(ctx, func(ctx context.Context) (err error) {
		shown, err = c.claims.Shown(ctx, c.export, c.consumer, resource)
		return err
	})
	return shown, err
}
