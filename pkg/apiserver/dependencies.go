package apiserver

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/server/healthz"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Catalog knows what is served. *registry.Catalog is one.
type Catalog interface {
	// Lookup returns what is served under an export.
	Lookup(export v1alpha1.ExportKey) (*registry.Served, bool)
	// Synced says whether everything that is stored has been loaded once. Before that, an unknown
	// export may be one that isn't loaded yet.
	Synced() bool
	// Held says whether the export exists and can't be served now. It is not gone.
	Held(export v1alpha1.ExportKey) bool
	// Awaited is how many exports are held only until something can be reached again.
	Awaited() int
	// Height is how many layers of served kinds are below the export's kind.
	Height(export v1alpha1.ExportKey) int
}

var _ Catalog = &registry.Catalog{}

// Bindings knows which logical clusters have bound an export.
type Bindings interface {
	// Bound says whether the cluster has a binding to the export. known is false while that can't be
	// told, for instance because the bindings have not been listed yet.
	Bound(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name) (bound, known bool)
}

// Reviewer asks a workspace whether one of its users may do something.
type Reviewer interface {
	// Review has the subject's access reviewed in the logical cluster, over the export. It fails with the
	// API server's Forbidden if the consumer hasn't accepted the claim that this takes.
	Review(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

// Dependencies is what the server asks of the rest of krop.
type Dependencies struct {
	Catalog  Catalog
	Bindings Bindings
	// Reviewer authorizes users that don't come through a shard; nil refuses them all.
	Reviewer Reviewer
	// Asked is called when a shard asks for objects of an export, which proves that kcp routes it here. May be nil.
	Asked func(export v1alpha1.ExportKey)
	// Live checks make livez; Ready checks, beside the catalog's own and the live ones, make readyz.
	Live, Ready []healthz.HealthChecker
}
