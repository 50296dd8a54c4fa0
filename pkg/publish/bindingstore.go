package publish

import (
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/client-go/tools/cache"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// bindingStore takes what one export's reflector sees. It is keyed by workspace and name, unlike client-go's
// stores, in which the bindings of two workspaces would collide.
type bindingStore struct {
	bindings *Bindings
	followed *followed
}

var _ cache.ReflectorStore = (*bindingStore)(nil)

// Add implements cache.ReflectorStore.
func (s *bindingStore) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *bindingStore) Update(object any) error {
	from, ok := object.(*apisv1alpha2.APIBinding)
	if !ok {
		return fmt.Errorf("expected an APIBinding, got %T", object)
	}
	s.change(func() []BindingEvent { return s.put(from) })
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *bindingStore) Delete(object any) error {
	from, ok := object.(*apisv1alpha2.APIBinding)
	if !ok {
		return fmt.Errorf("expected an APIBinding, got %T", object)
	}
	s.change(func() []BindingEvent { return s.remove(logicalcluster.From(from), from.Name) })
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *bindingStore) Replace(objects []any, _ string) error {
	s.change(func() []BindingEvent {
		events := s.replace(objects)
		s.followed.once.Do(func() {
			close(s.followed.listed)
			events = append(events, BindingEvent{Type: BindingsListed, Export: s.followed.export})
		})
		return events
	})
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *bindingStore) Resync() error { return nil }

// change changes under the lock and tells subscribers after it. Events of an export that is no longer
// followed are dropped.
func (s *bindingStore) change(do func() []BindingEvent) {
	s.bindings.mu.Lock()
	if s.bindings.exports[s.followed.export] != s.followed {
		s.bindings.mu.Unlock()
		return
	}
	events := do()
	s.bindings.mu.Unlock()
	s.bindings.announce(events)
}

func (s *bindingStore) put(from *apisv1alpha2.APIBinding) []BindingEvent {
	cluster := logicalcluster.From(from)
	inCluster := s.followed.clusters[cluster]
	if inCluster == nil {
		inCluster = map[string]*binding{}
		s.followed.clusters[cluster] = inCluster
		s.bindings.index(cluster, s.followed.export)
	}
	before := inCluster[from.Name]
	if before != nil && before.resourceVersion == from.ResourceVersion {
		return nil
	}
	after := bindingOf(from)
	after.doubts = doubtsOf(from, before)
	inCluster[from.Name] = after
	if before != nil && before.same(after) {
		return nil
	}
	event := BindingEvent{Type: BindingChanged, Export: s.followed.export, Cluster: cluster, Name: from.Name, Deleting: from.DeletionTimestamp != nil}
	if after.bound && (before == nil || !before.bound) {
		event.Type = BindingAdded
	}
	return []BindingEvent{event}
}

func (s *bindingStore) remove(cluster logicalcluster.Name, name string) []BindingEvent {
	inCluster := s.followed.clusters[cluster]
	if _, ok := inCluster[name]; !ok {
		return nil
	}
	delete(inCluster, name)
	if len(inCluster) == 0 {
		delete(s.followed.clusters, cluster)
		s.bindings.unindex(cluster, s.followed.export)
	}
	return []BindingEvent{{Type: BindingRemoved, Export: s.followed.export, Cluster: cluster, Name: name}}
}

func (s *bindingStore) replace(objects []any) []BindingEvent {
	var events []BindingEvent
	type key struct {
		cluster logicalcluster.Name
		name    string
	}
	seen := map[key]struct{}{}
	for _, object := range objects {
		if from, ok := object.(*apisv1alpha2.APIBinding); ok {
			seen[key{logicalcluster.From(from), from.Name}] = struct{}{}
			events = append(events, s.put(from)...)
		}
	}
	for cluster, inCluster := range s.followed.clusters {
		for name := range inCluster {
			if _, ok := seen[key{cluster, name}]; !ok {
				events = append(events, s.remove(cluster, name)...)
			}
		}
	}
	return events
}

func (b *Bindings) index(cluster logicalcluster.Name, export v1alpha1.ExportKey) {
	if b.byCluster[cluster] == nil {
		b.byCluster[cluster] = map[v1alpha1.ExportKey]struct{}{}
	}
	b.byCluster[cluster][export] = struct{}{}
}

func (b *Bindings) unindex(cluster logicalcluster.Name, export v1alpha1.ExportKey) {
	delete(b.byCluster[cluster], export)
	if len(b.byCluster[cluster]) == 0 {
		delete(b.byCluster, cluster)
	}
}
