package gc

import (
	"fmt"
	"testing"
)

func TestBindingsAreAskedForOncePerExportWhateverIsInDoubt(t *testing.T) {
	b := newBed()
	b.bindings.unknown = false
	for i := range 50 {
		name := fmt.Sprint("c", i)
		b.stored.put(instance(name, name, name))
		if i%2 == 0 {
			b.bindings.bound.Insert(cluster(name))
		}
	}
	b.start(t, testProgram("v1"))
	eventually(t, "those without a binding are reclaimed", func() bool {
		for i := 1; i < 50; i += 2 {
			if !b.gone(testKey(fmt.Sprint("c", i), fmt.Sprint("c", i))) {
				return false
			}
		}
		return true
	})
	if asked := b.bindings.asked(); asked != 1 {
		t.Errorf("bindings were listed %d times, want once", asked)
	}
	for i := 0; i < 50; i += 2 {
		if b.gone(testKey(fmt.Sprint("c", i), fmt.Sprint("c", i))) {
			t.Errorf("c%d has a binding, and was reclaimed", i)
		}
	}
}

// TestNothingIsKeptOfAnUnboundInstanceWhoseEndWasMissed is of one whose deletion no event told of.
func TestNothingIsKeptOfAnUnboundInstanceWhoseEndWasMissed(t *testing.T) {
	b := newBed()
	kind := newServed(b.Loop, testExport, testProgram("v1"), b.stored)
	key := kind.put(instance("c", "a", "u"))
	kind.unbound.add(kind.index.uidsIn("c"))
	kind.forgetKey(key)
	if kind.unbound.has("u") || len(kind.index.uidsIn("c")) != 0 {
		t.Error("it is still known")
	}
}

func TestIndexFindsTheInstancesOfACluster(t *testing.T) {
	x := newIndex(testExport)
	x.put(stored("c", "a", "1"))
	x.put(stored("c", "b", "2"))
	x.put(stored("d", "a", "3"))
	if keys := x.keysIn("c"); len(keys) != 2 || keys[0].Cluster != "c" || len(x.uidsIn("d")) != 1 {
		t.Errorf("c has %v, d has %v", keys, x.uidsIn("d"))
	}
	x.remove("3")
	if clusters := x.clusters(); len(clusters) != 1 || clusters[0] != "c" {
		t.Errorf("clusters: %v", clusters)
	}
}
