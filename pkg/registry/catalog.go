package registry

import (
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// Served is what krop serves under one export: one kind.
type Served struct {
	// Export that the kind is published as.
	Export v1alpha1.ExportKey
	// Kind is schema, names, scope, columns and strategies of the kind.
	Kind *kind.Kind
	// Storage is the routing table: "databases" and "databases/status".
	Storage map[string]rest.Storage
	// Program composes the kind's instances; nil for the blueprint kind itself.
	Program *engine.Program
}

// Catalog is the set of exports that are served now. Safe for concurrent use; a *Served that was
// looked up stays usable for the request that looked it up.
type Catalog struct {
	exports sync.Map // v1alpha1.ExportKey -> *Served
	synced  atomic.Bool
}

// Lookup returns what is served under the export.
func (c *Catalog) Lookup(key v1alpha1.ExportKey) (*Served, bool) {
	value, ok := c.exports.Load(key)
	if !ok {
		return nil, false
	}
	return value.(*Served), true
}

// Set starts serving, or swaps what is served.
func (c *Catalog) Set(served *Served) { c.exports.Store(served.Export, served) }

// Remove stops serving the export.
func (c *Catalog) Remove(key v1alpha1.ExportKey) { c.exports.Delete(key) }

// MarkSynced records that all stored blueprints have been loaded once. Until then an unknown export
// is answered with 503, never with 404: kcp's garbage collector takes 404 for proof.
func (c *Catalog) MarkSynced() { c.synced.Store(true) }

// Synced says whether all stored blueprints have been loaded once.
func (c *Catalog) Synced() bool { return c.synced.Load() }

// Range calls visit for each export until it returns false.
func (c *Catalog) Range(visit func(*Served) bool) {
	c.exports.Range(func(_, value any) bool { return visit(value.(*Served)) })
}
