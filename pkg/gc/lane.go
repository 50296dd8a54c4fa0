package gc

import (
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// lane is keys that wait. Exports take turns, and within each of them its consumer clusters. Only those who can't have
// another worker are passed over, of whom there are never more than the workers that they have.
type lane struct {
	exportOf func(v1alpha1.InstanceKey) v1alpha1.ExportKey
	exports  places[v1alpha1.ExportKey]
	clusters places[logicalcluster.Name]
	order    []v1alpha1.ExportKey // those that have keys, each once
	waiting  map[v1alpha1.ExportKey]*line
}

// turn is where a lane's next key is.
type turn struct{ export, cluster int }

func newLane(exportOf func(v1alpha1.InstanceKey) v1alpha1.ExportKey, perExport, perCluster int) *lane {
	return &lane{
		exportOf: exportOf, waiting: map[v1alpha1.ExportKey]*line{},
		exports: newPlaces[v1alpha1.ExportKey](perExport), clusters: newPlaces[logicalcluster.Name](perCluster),
	}
}

func (l *lane) push(key v1alpha1.InstanceKey) {
	export := l.exportOf(key)
	to, ok := l.waiting[export]
	if !ok {
		to = &line{waiting: map[logicalcluster.Name][]v1alpha1.InstanceKey{}}
		l.waiting[export] = to
		l.order = append(l.order, export)
	}
	to.push(key)
}

// next finds whose turn it is of those who may have a worker. Keys that don't wait here any more are dropped.
func (l *lane) next(free func(logicalcluster.Name) bool, waits func(v1alpha1.InstanceKey) bool) (turn, bool) {
	for i := 0; i < len(l.order); i++ {
		export := l.order[i]
		if !l.exports.free(export) {
			continue
		}
		mayHave := func(cluster logicalcluster.Name) bool { return l.clusters.free(cluster) && free(cluster) }
		if cluster, ok := l.waiting[export].next(mayHave, waits); ok {
			return turn{i, cluster}, true
		}
		if len(l.waiting[export].order) == 0 {
			l.drop(i)
			i--
		}
	}
	return turn{}, false
}

// pop takes the key whose turn it is, and its places.
func (l *lane) pop(at turn) v1alpha1.InstanceKey {
	export := l.order[at.export]
	of := l.waiting[export]
	key := of.pop(at.cluster)
	l.drop(at.export)
	if len(of.order) > 0 {
		l.waiting[export] = of
		l.order = append(l.order, export)
	}
	l.exports.take(export)
	l.clusters.take(key.Cluster)
	return key
}

func (l *lane) drop(i int) {
	delete(l.waiting, l.order[i])
	l.order = slices.Delete(l.order, i, i+1)
}

// left gives back the places of a key, and says of which there was no other.
func (l *lane) left(key v1alpha1.InstanceKey) (ofExport, ofCluster bool) {
	return l.exports.leave(l.exportOf(key)), l.clusters.leave(key.Cluster)
}

// line is a queue per consumer cluster, served in turns.
type line struct {
	order   []logicalcluster.Name // clusters that have keys, each once
	waiting map[logicalcluster.Name][]v1alpha1.InstanceKey
}

func (l *line) push(key v1alpha1.InstanceKey) {
	if len(l.waiting[key.Cluster]) == 0 {
		l.order = append(l.order, key.Cluster)
	}
	l.waiting[key.Cluster] = append(l.waiting[key.Cluster], key)
}

func (l *line) next(free func(logicalcluster.Name) bool, waits func(v1alpha1.InstanceKey) bool) (int, bool) {
	for i := 0; i < len(l.order); i++ {
		cluster := l.order[i]
		if !free(cluster) {
			continue
		}
		keys := l.waiting[cluster]
		for len(keys) > 0 && !waits(keys[0]) {
			keys = keys[1:]
		}
		if l.waiting[cluster] = keys; len(keys) > 0 {
			return i, true
		}
		l.drop(i)
		i--
	}
	return 0, false
}

func (l *line) pop(i int) v1alpha1.InstanceKey {
	cluster := l.order[i]
	key, rest := l.waiting[cluster][0], l.waiting[cluster][1:]
	l.drop(i)
	if len(rest) > 0 {
		l.waiting[cluster] = rest
		l.order = append(l.order, cluster)
	}
	return key
}

func (l *line) drop(i int) {
	delete(l.waiting, l.order[i])
	l.order = slices.Delete(l.order, i, i+1)
}

// places counts the workers that tenants have, each of them most at the most.
type places[T comparable] struct {
	most int
	has  map[T]int
}

func newPlaces[T comparable](most int) places[T] { return places[T]{most: most, has: map[T]int{}} }

func (p places[T]) free(tenant T) bool { return p.has[tenant] < p.most }

func (p places[T]) take(tenant T) { p.has[tenant]++ }

// leave gives a place back, and says whether there was no other.
func (p places[T]) leave(tenant T) (full bool) {
	full = !p.free(tenant)
	if p.has[tenant]--; p.has[tenant] == 0 {
		delete(p.has, tenant)
	}
	return full
}
