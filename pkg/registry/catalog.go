package registry

import (
	"sync"
	"sync/atomic"
	"time"

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
	// Records is the stored objects of the kind.
	Records *Records
	// Gate can keep new instances out; nil for the blueprint kind itself.
	Gate *Gate
	// Program composes the kind's instances; nil for the blueprint kind itself.
	Program *engine.Program
}

// Catalog is the set of exports that are served now. Safe for concurrent use; a *Served that was
// looked up stays usable for the request that looked it up.
type Catalog struct {
	exports sync.Map // v1alpha1.ExportKey -> *Served
	held    sync.Map // v1alpha1.ExportKey -> struct{}: known, but not served (yet)
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
func (c *Catalog) Set(served *Served) {
	c.exports.Store(served.Export, served)
	c.held.Delete(served.Export)
}

// Hold records that an export exists although it can't be served now: its blueprint could not be
// loaded. It is answered with 503, since its instances are there.
func (c *Catalog) Hold(key v1alpha1.ExportKey) { c.held.Store(key, struct{}{}) }

// Held says whether the export exists and can't be served now.
func (c *Catalog) Held(key v1alpha1.ExportKey) bool {
	_, held := c.held.Load(key)
	return held
}

// Remove forgets the export.
func (c *Catalog) Remove(key v1alpha1.ExportKey) {
	c.exports.Delete(key)
	c.held.Delete(key)
}

// MarkSynced records that all stored blueprints have been loaded once. Until then an unknown export
// is answered with 503, never with 404: kcp's garbage collector takes 404 for proof.
func (c *Catalog) MarkSynced() { c.synced.Store(true) }

// Synced says whether all stored blueprints have been loaded once.
func (c *Catalog) Synced() bool { return c.synced.Load() }

// Range calls visit for each export until it returns false.
func (c *Catalog) Range(visit func(*Served) bool) {
	c.exports.Range(func(_, value any) bool { return visit(value.(*Served)) })
}

// drainTime is how long the storage of a kind outlives its replacement: longer than any request but a
// watch, which ends and starts anew.
const drainTime = 90 * time.Second

// DestroyLater stops the caches of storage that isn't looked up any more, once the requests that
// still use it have ended.
func DestroyLater(served *Served) {
	time.AfterFunc(drainTime, served.Records.Destroy)
}
