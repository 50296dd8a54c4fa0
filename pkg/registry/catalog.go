package registry

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
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

// Blueprint names the blueprint that is served; empty for the blueprint kind itself.
func (s *Served) Blueprint() string {
	if s.Program == nil {
		return ""
	}
	return s.Program.Blueprint
}

// Catalog is the set of exports that are served now. Safe for concurrent use; a *Served that was
// looked up stays usable for the request that looked it up.
type Catalog struct {
	exports sync.Map // v1alpha1.ExportKey -> *Served
	held    sync.Map // v1alpha1.ExportKey -> string: the blueprint of what is known, but not served (yet)
	awaited sync.Map // v1alpha1.ExportKey -> struct{}: held until something can be reached again
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
	c.awaited.Delete(served.Export)
}

// Hold records that a blueprint's export exists although it can't be served now: the blueprint could not
// be loaded. It is answered with 503, since its instances are there. One that is served by now isn't held.
func (c *Catalog) Hold(key v1alpha1.ExportKey, blueprint string) {
	c.awaited.Delete(key)
	c.held.Store(key, blueprint)
	if _, served := c.Lookup(key); served { // Set forgets what is held after it serves
		c.held.Delete(key)
	}
}

// Await records that a held export lacks nothing but the answer of a server that can't be reached now:
// unlike with a blueprint that doesn't compile any more, nobody has to do anything about it.
func (c *Catalog) Await(key v1alpha1.ExportKey) {
	if c.Held(key) {
		c.awaited.Store(key, struct{}{})
	}
}

// Awaited is how many exports can't be served before something can be reached again.
func (c *Catalog) Awaited() int {
	count := 0
	c.awaited.Range(func(key, _ any) bool {
		if c.Held(key.(v1alpha1.ExportKey)) { // not if it has been served while Await looked
			count++
		}
		return true
	})
	return count
}

// Held says whether the export exists and can't be served now.
func (c *Catalog) Held(key v1alpha1.ExportKey) bool {
	_, held := c.held.Load(key)
	return held
}

// OwnerOf names the blueprint that the export is served or held for: empty for the blueprint kind itself.
func (c *Catalog) OwnerOf(key v1alpha1.ExportKey) (blueprint string, known bool) {
	if served, ok := c.Lookup(key); ok {
		return served.Blueprint(), true
	}
	if held, ok := c.held.Load(key); ok {
		return held.(string), true
	}
	return "", false
}

// ExportsOf are the exports of a workspace that are served or held for the blueprint.
func (c *Catalog) ExportsOf(cluster logicalcluster.Name, blueprint string) []v1alpha1.ExportKey {
	var exports []v1alpha1.ExportKey
	add := func(key, _ any) bool {
		export := key.(v1alpha1.ExportKey)
		if owner, ok := c.OwnerOf(export); ok && export.Cluster == cluster && owner == blueprint {
			exports = append(exports, export)
		}
		return true
	}
	c.exports.Range(add)
	c.held.Range(add)
	return exports
}

// CountOf is how many exports of a workspace are served or held.
func (c *Catalog) CountOf(cluster logicalcluster.Name) int {
	count := 0
	add := func(key, _ any) bool {
		if key.(v1alpha1.ExportKey).Cluster == cluster {
			count++
		}
		return true
	}
	c.exports.Range(add)
	c.held.Range(add)
	return count
}

// Remove forgets the export.
func (c *Catalog) Remove(key v1alpha1.ExportKey) {
	c.exports.Delete(key)
	c.held.Delete(key)
	c.awaited.Delete(key)
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
