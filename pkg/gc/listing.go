package gc

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
)

// listing finds out what has gone while nobody watched: what was known before the instances were listed, and isn't
// among them. No event tells of it, and where another replica looks after the consumer, no pass does either. It is used
// by the goroutine of one watch.
type listing struct {
	kind   *served
	unseen sets.Set[types.UID] // nil once all that is stored has been told of
}

func newListing(kind *served) *listing { return &listing{kind: kind, unseen: kind.index.uids()} }

// told takes up an event of the watch.
func (l *listing) told(event watch.EventType, instance *unstructured.Unstructured) {
	switch event {
	case watch.Error:
		l.unseen = l.kind.index.uids()
	case watch.Bookmark:
		l.kind.forgetUnseen(l.unseen)
		l.unseen = nil
	default:
		l.unseen.Delete(instance.GetUID())
	}
	l.kind.instanceChanged(event, instance)
}

// forgetUnseen drops instances that were gone when the instances were listed. What they were composed of isn't known
// any more: orphans on shared planes are found by their marks.
func (s *served) forgetUnseen(uids sets.Set[types.UID]) {
	for uid := range uids {
		if key, ok := s.index.find(uid); ok {
			s.drop(key, uid)
		}
	}
	if len(uids) > 0 {
		s.children.listAnew()
	}
}
