package gc

import (
	"errors"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

func TestAnOrphanWhoseVersionWasDroppedIsDeletedInAnother(t *testing.T) {
	b, of := sweepBed(t)
	b.shared.serves = []string{"v2"}
	orphan := child("orphan", "u", "1", "c", "dead")
	served := of.gvr
	served.Version = "v2"
	b.shared.objects[plane.Object{GVR: served, Namespace: "default", Name: "orphan"}] = orphan
	b.sources.tell(of, watch.Added, orphan)
	eventually(t, "it is deleted", func() bool { return !b.shared.has("orphan") })
}

func TestStraysOfOthersAndOfGoneExportsTakeNoRoom(t *testing.T) {
	b := newBed()
	leases := NewLeases(nil, "", "")
	b.Loop.config.Ownership = leases
	leases.Subscribe(b.gained)
	leases.set([]int{sliceOf("witness")})
	if leases.Owns("c") {
		t.Fatal("both clusters are in one slice")
	}
	b.start(t, testProgram("v1", secretNode))
	of := source{v1alpha1.TargetProvider, testGVR}
	eventually(t, "children are watched", func() bool { return b.sources.isOpen(of) })
	orphan := child("orphan", "u", "1", "c", "dead")
	b.place(of, orphan)
	b.swept(t, of)
	if len(b.strays.byConsumer()) != 0 || !b.shared.has("orphan") {
		t.Error("another replica's orphan is remembered, or was deleted")
	}

	leases.set([]int{sliceOf("witness"), sliceOf("c")})
	eventually(t, "with the cluster gained, children are listed anew", func() bool { return b.sources.started(of) == 2 })
	b.sources.tell(of, watch.Added, orphan) // as that list does
	eventually(t, "the orphan is deleted", func() bool { return !b.shared.has("orphan") })
	eventually(t, "one watch is left", func() bool { return b.sources.ended(of) == 1 })

	b.shared.mutex.Lock()
	b.shared.fail = errors.New("away")
	b.shared.mutex.Unlock()
	b.sources.tell(of, watch.Added, child("another", "u2", "1", "c", "dead"))
	b.Stop(testExport)
	eventually(t, "strays of a stopped export are forgotten", func() bool { return len(b.strays.byConsumer()) == 0 })
}

func TestWhenStraysAreTooManyThePlaneIsListedAnewOnceThereIsRoom(t *testing.T) {
	owned := true
	s := newStrays(func(cluster logicalcluster.Name) bool { return owned || cluster == "mine" })
	s.most = 2
	one := func(name string, consumer logicalcluster.Name) stray {
		return stray{target: v1alpha1.TargetProvider, object: plane.Object{Name: name}, consumer: consumer}
	}
	s.add(one("a", "theirs"))
	s.add(one("b", "mine"))
	owned = false
	s.add(one("c", "mine")) // in place of what has become another replica's
	s.add(one("d", "mine"))
	if found := s.byConsumer(); len(found) != 1 || len(found[household{consumer: "mine"}]) != 2 {
		t.Errorf("remembered: %v", found)
	}
	if s.caughtUp() {
		t.Error("there is no room yet")
	}
	s.remove(one("b", "mine"))
	if !s.caughtUp() || s.caughtUp() {
		t.Error("there is room for what was missed, once")
	}
	s.add(one("e", "theirs"))
	if found := s.byConsumer(); len(found[household{consumer: "theirs"}]) != 0 {
		t.Error("another replica's stray is remembered although there is room")
	}
}
