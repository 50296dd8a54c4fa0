package gc

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
)

func TestWhatHasGoneDuringACutIsForgotten(t *testing.T) {
	b := newBed()
	kind := newServed(b.Loop, testExport, testProgram("v1"), b.stored)
	told := newListing(kind).told
	told(watch.Added, instance("c", "stays", "1"))
	told(watch.Added, instance("c", "goes", "2"))
	told(watch.Bookmark, nil)
	kind.unbound.add(kind.index.uidsIn("c"))
	told(watch.Error, nil)
	kind.put(instance("c", "made", "3")) // by a request, which the list may not have
	told(watch.Added, instance("c", "stays", "1"))
	told(watch.Bookmark, nil)
	if known := kind.index.uids(); !known.Equal(sets.New[types.UID]("1", "3")) {
		t.Errorf("known are %v", known.UnsortedList())
	}
	if kind.unbound.has("2") || !kind.unbound.has("1") {
		t.Error("what was unbound is not what is stored of it")
	}
	if !kind.children.listing.Load() {
		t.Error("nobody looks for what is left of the children")
	}
}
