package instance

import (
	"context"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/util/cache"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

const (
	// namespaceMemory is how long a namespace that could take instances is believed to. It saves two
	// round trips within kcp per create, and bounds what another replica does not notice. On this one,
	// the first thing that kcp does to a namespace that is being deleted makes it forget.
	namespaceMemory = 2 * time.Second
	// maxNamespaces bounds what is remembered, at some 200 bytes each.
	maxNamespaces = 4096
)

type namespaceKey struct {
	export   v1alpha1.ExportKey
	consumer logicalcluster.Name
	name     string
}

// RememberedNamespaces remembers for a moment which namespaces could take instances. Those that
// couldn't are asked for anew. Safe for concurrent use.
type RememberedNamespaces struct {
	ask  Namespaces
	good *cache.LRUExpireCache
}

var _ Namespaces = &RememberedNamespaces{}

// RememberNamespaces puts a memory before what knows.
func RememberNamespaces(ask Namespaces) *RememberedNamespaces {
	return &RememberedNamespaces{ask: ask, good: cache.NewLRUExpireCache(maxNamespaces)}
}

// Check implements Namespaces.
func (n *RememberedNamespaces) Check(ctx context.Context, export v1alpha1.ExportKey, consumer logicalcluster.Name, name string) error {
	key := namespaceKey{export, consumer, name}
	if _, ok := n.good.Get(key); ok {
		return nil
	}
	err := n.ask.Check(ctx, export, consumer, name)
	if err == nil {
		n.good.Add(key, struct{}{}, namespaceMemory)
	}
	return err
}

// Forget has the namespace asked for again.
func (n *RememberedNamespaces) Forget(export v1alpha1.ExportKey, consumer logicalcluster.Name, name string) {
	n.good.Remove(namespaceKey{export, consumer, name})
}
