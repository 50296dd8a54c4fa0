package gc

import "testing"

// label is what the stored instance is labelled with.
func (b *bed) label(name string) string {
	b.stored.mutex.Lock()
	defer b.stored.mutex.Unlock()
	return b.stored.objects[testKey("c", name)].GetLabels()["claimed"]
}

func TestAClaimThatIsAcceptedLaterRelabelsWhatIsStored(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1"))
	b.idle(t)
	before := b.composer.count("v1 a")
	b.stored.claim("by another export")
	b.ClaimsChanged("elsewhere")
	b.ClaimsChanged("c")
	eventually(t, "the instance has the label", func() bool { return b.label("a") == "by another export" })
	b.stored.claim("")
	b.idle(t)
	if got := b.composer.count("v1 a"); got != before {
		t.Errorf("labels alone brought %d passes", got-before)
	}
	if b.label("a") != "by another export" {
		t.Error("labels were written again without an event")
	}
}

func TestStartRelabelsWhatIsStored(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.stored.claim("accepted meanwhile")
	b.start(t, testProgram("v1"))
	eventually(t, "the instance has the label", func() bool { return b.label("a") == "accepted meanwhile" })
}

func TestBindingsThatAreKnownLateRelabelWhatIsStored(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1"))
	b.idle(t)
	b.stored.claim("known by now")
	b.ClaimsKnown()
	eventually(t, "the instance has the label", func() bool { return b.label("a") == "known by now" })
}

func TestAnInstanceThatIsBeingComposedIsRelabelledAfterwards(t *testing.T) {
	b := newBed()
	b.stored.put(instance("c", "a", "1"))
	b.start(t, testProgram("v1"))
	b.idle(t)
	unlock, err := b.stored.Lock(t.Context(), testKey("c", "a"))
	if err != nil {
		t.Fatal(err)
	}
	refused := b.stored.counted(&b.stored.refused)
	b.stored.claim("x")
	b.ClaimsChanged("c")
	eventually(t, "the lock is tried", func() bool { return b.stored.counted(&b.stored.refused) > refused })
	if got := b.label("a"); got != "" {
		t.Errorf("label %q was written under somebody's lock", got)
	}
	unlock()
	eventually(t, "the instance has the label", func() bool { return b.label("a") == "x" })
}
