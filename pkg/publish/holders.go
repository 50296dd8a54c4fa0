package publish

import (
	"context"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// holdersTimeout bounds a read that nobody waits for: that of an export with thousands of bindings.
const holdersTimeout = 30 * time.Second

// Holders are the workspaces that have a binding to the export, whatever its phase: one that is being deleted is
// one. They are read from kcp each time, outside of the limit for reads that requests wait for: callers take
// turns. known is false if that fails: then nothing may be concluded.
func (b *Bindings) Holders(ctx context.Context, export v1alpha1.ExportKey) (holders sets.Set[logicalcluster.Name], known bool) {
	b.mu.RLock()
	f, ok := b.exports[export]
	b.mu.RUnlock()
	if !ok {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, holdersTimeout)
	defer cancel()
	list, err := f.list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, false
	}
	holders = sets.New[logicalcluster.Name]()
	for i := range list.Items {
		holders.Insert(logicalcluster.From(&list.Items[i]))
	}
	return holders, true
}
