package gc

import (
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// source is one thing to watch for children.
type source struct {
	target v1alpha1.Target
	gvr    schema.GroupVersionResource
}

// sourceSet is the sources of an inventory. Instances of one kind mostly have the same ones, so they share it.
type sourceSet struct {
	key       string
	sources   []source
	instances int
}

// entry is what the index keeps of an instance: a few words, since there may be many idle ones.
type entry struct {
	cluster, namespace unique.Handle[string]
	name               string
	set                *sourceSet
}

// index finds an instance by its UID, and knows what all inventories together need watched. It
// follows the watch of instances, so it may lag behind storage; whoever acts reads storage. Safe for
// concurrent use.
type index struct {
	export v1alpha1.ExportKey

	mutex     sync.RWMutex
	instances map[types.UID]entry
	byCluster map[unique.Handle[string]]sets.Set[types.UID]
	sets      map[string]*sourceSet
}

func newIndex(export v1alpha1.ExportKey) *index {
	return &index{
		export:    export,
		instances: map[types.UID]entry{},
		byCluster: map[unique.Handle[string]]sets.Set[types.UID]{},
		sets:      map[string]*sourceSet{},
	}
}

func (x *index) key(e entry) v1alpha1.InstanceKey {
	return v1alpha1.InstanceKey{
		Export:    x.export,
		Cluster:   logicalcluster.Name(e.cluster.Value()),
		Namespace: e.namespace.Value(),
		Name:      e.name,
	}
}

// put adds or refreshes an instance. sourcesChanged says that what all inventories together need
// watched is not what it was.
func (x *index) put(instance *unstructured.Unstructured) (key v1alpha1.InstanceKey, sourcesChanged bool) {
	sources := sourcesOf(instance)
	e := entry{
		cluster:   unique.Make(logicalcluster.From(instance).String()),
		namespace: unique.Make(instance.GetNamespace()),
		name:      instance.GetName(),
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	uid := instance.GetUID()
	old, known := x.instances[uid]
	e.set, sourcesChanged = x.join(sources)
	if known && x.leave(old.set) {
		sourcesChanged = true
	}
	x.instances[uid] = e
	if x.byCluster[e.cluster] == nil {
		x.byCluster[e.cluster] = sets.New[types.UID]()
	}
	x.byCluster[e.cluster].Insert(uid)
	return x.key(e), sourcesChanged
}

// join counts an instance in with those that have the same sources.
func (x *index) join(sources []source) (set *sourceSet, isNew bool) {
	key := setKey(sources)
	set, ok := x.sets[key]
	if !ok {
		set = &sourceSet{key: key, sources: sources}
		x.sets[key] = set
	}
	set.instances++
	return set, !ok
}

// leave says whether the set has no instances any more.
func (x *index) leave(set *sourceSet) (last bool) {
	set.instances--
	if set.instances > 0 {
		return false
	}
	delete(x.sets, set.key)
	return true
}

// remove forgets an instance.
func (x *index) remove(uid types.UID) (sourcesChanged bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	e, ok := x.instances[uid]
	if !ok {
		return false
	}
	delete(x.instances, uid)
	inCluster := x.byCluster[e.cluster]
	if inCluster.Delete(uid); len(inCluster) == 0 {
		delete(x.byCluster, e.cluster)
	}
	return x.leave(e.set)
}

// removeKey forgets whatever is known under a name of which storage says that there is nothing, and says what
// that was.
func (x *index) removeKey(key v1alpha1.InstanceKey) (gone []types.UID) {
	for _, uid := range x.uidsIn(key.Cluster) {
		if known, ok := x.find(uid); ok && known == key {
			x.remove(uid)
			gone = append(gone, uid)
		}
	}
	return gone
}

// find returns the name of the instance with this UID.
func (x *index) find(uid types.UID) (v1alpha1.InstanceKey, bool) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	e, ok := x.instances[uid]
	if !ok {
		return v1alpha1.InstanceKey{}, false
	}
	return x.key(e), true
}

// keys returns the names that match.
func (x *index) keys(match func(v1alpha1.InstanceKey) bool) []v1alpha1.InstanceKey {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	var keys []v1alpha1.InstanceKey
	for _, e := range x.instances {
		if key := x.key(e); match(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// uids are all instances.
func (x *index) uids() sets.Set[types.UID] {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return sets.KeySet(x.instances)
}

// uidsIn are the instances of one cluster.
func (x *index) uidsIn(cluster logicalcluster.Name) []types.UID {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.byCluster[unique.Make(cluster.String())].UnsortedList()
}

// keysIn are the names of the instances of one cluster.
func (x *index) keysIn(cluster logicalcluster.Name) []v1alpha1.InstanceKey {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	var keys []v1alpha1.InstanceKey
	for uid := range x.byCluster[unique.Make(cluster.String())] {
		keys = append(keys, x.key(x.instances[uid]))
	}
	return keys
}

// clusters are the consumer clusters that have instances, each once.
func (x *index) clusters() []logicalcluster.Name {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	names := make([]logicalcluster.Name, 0, len(x.byCluster))
	for cluster := range x.byCluster {
		names = append(names, logicalcluster.Name(cluster.Value()))
	}
	return names
}

// sources are those of all inventories, each once.
func (x *index) sources() map[source]struct{} {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	all := map[source]struct{}{}
	for _, set := range x.sets {
		for _, s := range set.sources {
			all[s] = struct{}{}
		}
	}
	return all
}

// sourcesOf lists what has to be watched for the children in an instance's inventory, sorted.
func sourcesOf(instance *unstructured.Unstructured) []source {
	var sources []source
	for _, row := range inventory(instance) {
		s := source{target: row.Target, gvr: row.GVR()}
		if row.Resource != "" && !slices.Contains(sources, s) {
			sources = append(sources, s)
		}
	}
	slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.String(), b.String()) })
	return sources
}

func setKey(sources []source) string {
	var b strings.Builder
	for _, s := range sources {
		b.WriteString(s.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// String is "target group/version/resource".
func (s source) String() string {
	return string(s.target) + " " + s.gvr.Group + "/" + s.gvr.Version + "/" + s.gvr.Resource
}
