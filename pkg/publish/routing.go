package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// HeaderServedBy is on every answer that krop gives to a shard. kcp passes it on, so whoever sees it knows
// that krop has answered, and not kcp from a storage of its own.
const HeaderServedBy = "X-Krop-Served-By"

// ErrNotRouted says that kcp answers requests for a kind itself that it should send to krop. Its feature gate
// CacheAPIs is off, or was when the export was first bound.
var ErrNotRouted = errors.New("kcp does not route the kind to krop; is its feature gate CacheAPIs on?")

// Routes remembers for which exports kcp was seen to send requests to krop. Safe for concurrent use.
type Routes struct {
	seen sync.Map // v1alpha1.ExportKey -> struct{}
}

// Observe records that a shard has asked krop for objects of the export. Discovery does not count: kcp asks
// for it even where it then answers itself.
func (r *Routes) Observe(export v1alpha1.ExportKey) { r.seen.LoadOrStore(export, struct{}{}) }

// Seen says whether this process has observed a request for the export.
func (r *Routes) Seen(export v1alpha1.ExportKey) bool {
	_, seen := r.seen.Load(export)
	return seen
}

// Forget makes the next request for the export the first one again.
func (r *Routes) Forget(export v1alpha1.ExportKey) { r.seen.Delete(export) }

// ProveRouting lists blueprints in krop's own workspace, through kcp, and fails unless krop answers. It
// wraps ErrNotRouted if kcp answers instead.
func (p *Publisher) ProveRouting(ctx context.Context) error {
	address := p.kcp.config.Host + p.kcp.home.RequestPath() +
		"/apis/" + v1alpha1.GroupVersion.String() + "/resourcegraphdefinitions?limit=1"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := p.kcp.client.Do(request)
	if err != nil {
		return fmt.Errorf("listing blueprints through kcp: %w", err)
	}
	defer response.Body.Close()
	// Read to the end, so that the connection can be used again; an answer of limit 1 is small.
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxProofBytes)); err != nil {
		return fmt.Errorf("listing blueprints through kcp: %w", err)
	}
	switch {
	case response.Header.Get(HeaderServedBy) != "":
		return nil
	case response.StatusCode == http.StatusOK:
		return ErrNotRouted
	default:
		resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "resourcegraphdefinitions"}
		return apierrors.NewGenericServerResponse(response.StatusCode, "list", resource, "",
			"krop's own binding in "+p.kcp.home.String()+" does not lead to krop (see krop bootstrap)", 0, true)
	}
}

// maxProofBytes is far more than one blueprint can take in etcd.
const maxProofBytes = 4 << 20

// Prover finds out whether kcp sends requests for a published kind to krop. That can't be known before
// somebody has bound the export: without a binding kcp proxies nothing.
type Prover struct {
	Bindings *Bindings
	Routes   *Routes
}

// Routed says whether a workspace has bound the export, and if so fails unless kcp sends its requests to
// krop: with ErrNotRouted if kcp answers itself. With several replicas the question may come to another
// one; then this one may fail with ErrNotRouted until it sees a request, while the other knows better.
func (p *Prover) Routed(ctx context.Context, export v1alpha1.ExportKey, resource schema.GroupVersionResource) (bound bool, err error) {
	if p.Routes.Seen(export) {
		return true, nil
	}
	clusters := p.Bindings.Clusters(export)
	if len(clusters) == 0 {
		return false, nil
	}
	if err := p.Bindings.probe(ctx, export, clusters[0], resource); err != nil {
		return true, fmt.Errorf("reading %s through kcp: %w", resource.GroupResource(), err)
	}
	if !p.Routes.Seen(export) {
		return true, ErrNotRouted
	}
	return true, nil
}

// probe makes kcp send one read of the export's kind, from a workspace that has bound it, to wherever it
// thinks the kind is served.
func (b *Bindings) probe(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name, resource schema.GroupVersionResource) error {
	address := b.kcp.virtual.JoinPath(virtualWorkspacePath(export), "clusters", cluster.String()).String()
	w, err := b.kcp.at(cluster.Path(), address)
	if err != nil {
		return err
	}
	_, err = w.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
