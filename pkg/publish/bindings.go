package publish

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Bindings follows the APIBindings of exports, by one list and one watch per export through its virtual
// workspace, where they are always readable. Safe for concurrent use.
type Bindings struct {
	kcp *kcp

	mu          sync.RWMutex
	exports     map[v1alpha1.ExportKey]*followed
	byCluster   map[logicalcluster.Name]map[v1alpha1.ExportKey]struct{}
	byLabel     map[string]v1alpha1.ExportKey // by the key of the label that shows objects to the export
	subscribers map[int]func(BindingEvent)
	nextID      int
}

// BindingEventType says what happened to a binding.
type BindingEventType string

const (
	// BindingAdded says that a workspace has bound the export by now, so that its kind is served there. A
	// binding that kcp has yet to complete is only a change.
	BindingAdded BindingEventType = "Added"
	// BindingChanged says that something about the binding has changed, such as the claims it accepts.
	BindingChanged BindingEventType = "Changed"
	// BindingRemoved says that the binding was seen to go. It is a hint: ask Holders before deleting anything.
	BindingRemoved BindingEventType = "Removed"
	// BindingsListed says that all bindings of the export are known by now. It is told once, and names no binding.
	BindingsListed BindingEventType = "Listed"
)

// BindingEvent says that a workspace's binding to an export has changed.
type BindingEvent struct {
	Type    BindingEventType
	Export  v1alpha1.ExportKey
	Cluster logicalcluster.Name
	// Name of the APIBinding.
	Name string
	// Deleting is set while the binding is being deleted and something holds it.
	Deleting bool
}

// NewBindings makes a Bindings that follows nothing yet.
func NewBindings(config Config) (*Bindings, error) {
	k, err := newKCP(config)
	if err != nil {
		return nil, err
	}
	return &Bindings{
		kcp:         k,
		exports:     map[v1alpha1.ExportKey]*followed{},
		byCluster:   map[logicalcluster.Name]map[v1alpha1.ExportKey]struct{}{},
		byLabel:     map[string]v1alpha1.ExportKey{},
		subscribers: map[int]func(BindingEvent){},
	}, nil
}

// Track follows the export's bindings until Untrack or Close. Tracking it again changes nothing.
func (b *Bindings) Track(export v1alpha1.ExportKey) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.exports[export]; ok {
		return nil
	}
	f, err := b.follow(export)
	if err != nil {
		return err
	}
	b.exports[export] = f
	b.byLabel[claimLabel(export)] = export
	return nil
}

// Untrack stops following the export's bindings, and forgets them. Nobody is told.
func (b *Bindings) Untrack(export v1alpha1.ExportKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.exports[export]
	if !ok {
		return
	}
	f.stop()
	delete(b.exports, export)
	delete(b.byLabel, claimLabel(export))
	for cluster := range f.clusters {
		b.unindex(cluster, export)
	}
}

// Close stops following everything.
func (b *Bindings) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.exports {
		f.stop()
	}
	b.exports = map[v1alpha1.ExportKey]*followed{}
	b.byCluster = map[logicalcluster.Name]map[v1alpha1.ExportKey]struct{}{}
	b.byLabel = map[string]v1alpha1.ExportKey{}
}

// Subscribe calls handle for every event from now on, one export's in order. handle must return quickly and
// must not call Track, Untrack or Close. The function that is returned ends the subscription.
func (b *Bindings) Subscribe(handle func(BindingEvent)) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.nextID
	b.nextID++
	b.subscribers[id] = handle
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers, id)
	}
}

func (b *Bindings) announce(events []BindingEvent) {
	b.mu.RLock()
	handlers := make([]func(BindingEvent), 0, len(b.subscribers))
	for _, handle := range b.subscribers {
		handlers = append(handlers, handle)
	}
	b.mu.RUnlock()
	for _, event := range events {
		for _, handle := range handlers {
			handle(event)
		}
	}
}

// WaitKnown waits until the export's bindings have been listed once. The export must be tracked.
func (b *Bindings) WaitKnown(ctx context.Context, export v1alpha1.ExportKey) error {
	b.mu.RLock()
	f, ok := b.exports[export]
	b.mu.RUnlock()
	if !ok {
		return errNotTracked(export)
	}
	select {
	case <-f.listed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Bound says whether the workspace has bound the export. What the watch has seen is believed; what it has not
// seen is read from kcp, so that a fresh binding works at once and so that "not bound" is proven. known is
// false if that read fails, or if there have been too many of them: then nothing may be concluded.
func (b *Bindings) Bound(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name) (bound, known bool) {
	b.mu.RLock()
	f, ok := b.exports[export]
	bound = ok && f.bound(cluster)
	b.mu.RUnlock()
	if bound {
		return true, true
	}
	if !ok {
		return false, false
	}
	return b.confirm(ctx, f, cluster)
}

// Accepted are the claims of the export that the workspace has accepted, with the verbs that take effect. Among
// them, "*" means all verbs.
func (b *Bindings) Accepted(export v1alpha1.ExportKey, cluster logicalcluster.Name) []v1alpha1.PermissionClaim {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f, ok := b.exports[export]
	if !ok {
		return nil
	}
	var claims []v1alpha1.PermissionClaim
	for _, binding := range f.clusters[cluster] {
		for _, claim := range binding.accepted {
			if len(claim.Verbs) > 0 {
				claims = append(claims, claim.PermissionClaim)
			}
		}
	}
	return claims
}

// Clusters are the workspaces that were seen to have bound the export.
func (b *Bindings) Clusters(export v1alpha1.ExportKey) []logicalcluster.Name {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f, ok := b.exports[export]
	if !ok {
		return nil
	}
	clusters := make([]logicalcluster.Name, 0, len(f.clusters))
	for cluster := range f.clusters {
		if f.bound(cluster) {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// confirmTimeout bounds a read that a request waits for.
const confirmTimeout = 3 * time.Second

// confirm lists the export's bindings. The answer isn't shared among callers: a list that was under way when
// somebody asks may be older than the question.
func (b *Bindings) confirm(ctx context.Context, f *followed, cluster logicalcluster.Name) (bound, known bool) {
	found, known := b.read(ctx, f, cluster)
	return slices.ContainsFunc(found, func(each *binding) bool { return each.bound }), known
}

// read asks kcp for the workspace's bindings to an export.
func (b *Bindings) read(ctx context.Context, f *followed, cluster logicalcluster.Name) (found []*binding, known bool) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if err := f.limit.Wait(ctx); err != nil {
		return nil, false
	}
	list, err := f.list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, false
	}
	for i := range list.Items {
		if logicalcluster.From(&list.Items[i]) == cluster {
			found = append(found, bindingOf(&list.Items[i]))
		}
	}
	return found, true
}
