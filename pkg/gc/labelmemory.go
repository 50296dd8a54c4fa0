package gc

import (
	"sync/atomic"
	"unique"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// maxLabelBytes bounds what is remembered of one object's labels, since whoever may write the object decides how
// many it has, up to a megabyte. Ordinary ones are a few hundred bytes.
const maxLabelBytes = 2048

// labelMemory is the labels that the objects of one source had last: an object that leaves a selection is told by
// them. Where it knows none, an object may have had any. It is used by one goroutine, but for wanted.
type labelMemory struct {
	wanted atomic.Bool // somebody selects
	known  map[identity]unique.Handle[string]
}

// identity is an object within a source.
type identity struct {
	cluster         logicalcluster.Name
	namespace, name string
}

func newLabelMemory(wanted bool) *labelMemory {
	m := &labelMemory{known: map[identity]unique.Handle[string]{}}
	m.wanted.Store(wanted)
	return m
}

// change remembers an object's labels, and says which ones it had and has: nil ones where they aren't known.
func (m *labelMemory) change(event watch.EventType, object *unstructured.Unstructured) []labels.Labels {
	id := identity{logicalcluster.From(object), object.GetNamespace(), object.GetName()}
	before := m.of(id)
	delete(m.known, id)
	if event == watch.Deleted {
		return []labels.Labels{before}
	}
	now := labels.Set(object.GetLabels())
	if m.wanted.Load() && size(now) <= maxLabelBytes {
		m.known[id] = unique.Make(now.String())
	}
	if event == watch.Added {
		return []labels.Labels{now}
	}
	return []labels.Labels{before, now}
}

func (m *labelMemory) of(id identity) labels.Labels {
	text, ok := m.known[id]
	if !ok {
		return nil
	}
	set, err := labels.ConvertSelectorToLabelsMap(text.Value())
	if err != nil {
		return nil
	}
	return set
}

func size(set labels.Set) int {
	bytes := 0
	for key, value := range set {
		bytes += len(key) + len(value)
	}
	return bytes
}
