package gc

import "testing"

func TestOnlyVersionsUpToTheOneTakenIntoAccountAreEchoes(t *testing.T) {
	s, by := newSeen(), testKey("c", "a")
	s.add(by, version{"u", "100"})
	s.add(by, version{"u", "99"})
	for resourceVersion, echo := range map[string]bool{"9": true, "99": true, "100": true, "101": false, "1000": false, "": false, "x": false} {
		if got := s.covers(by, version{"u", resourceVersion}); got != echo {
			t.Errorf("version %q: echo is %t, want %t", resourceVersion, got, echo)
		}
	}
	if s.covers(by, version{"other", "1"}) {
		t.Error("an object that nothing is known of counts as seen")
	}
	if s.covers(testKey("c", "b"), version{"u", "100"}) {
		t.Error("what one instance has taken into account counts as seen by another, whose child it may be")
	}
}

func TestReasonsAddUp(t *testing.T) {
	key := keyOf("c", "a")
	d := newDue()
	d.add(key, routine)
	if d.urgent(key) {
		t.Error("a resync is urgent")
	}
	d.add(key, changed(version{"u", "1"}))
	if !d.urgent(key) {
		t.Error("an event during a resync is not urgent")
	}
	if why, ok := d.take(key); !ok || !why.forced {
		t.Error("an event has taken the resync's force away")
	}
	for range maxChanges + 1 {
		d.add(key, changed(version{"u", "1"}))
	}
	if why, _ := d.take(key); !why.forced || len(why.changes) > maxChanges {
		t.Error("changes pile up without bound")
	}
	if _, ok := d.take(key); ok {
		t.Error("reasons are taken twice")
	}
}
