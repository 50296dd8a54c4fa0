package gc

import (
	"testing"

	"go.opendefense.cloud/krop/pkg/plane"
)

func TestAnOrphanWhoseVersionWasDroppedIsDeletedInAnother(t *testing.T) {
	b, of := sweepBed(t)
	b.shared.serves = []string{"v2"}
	orphan := child("orphan", "u", "1", "c", "dead")
	served := of.gvr
	served.Version = "v2"
	b.shared.objects[plane.Object{GVR: served, Namespace: "default", Name: "orphan"}] = orphan
	b.sources.tell(of, "ADDED", orphan)
	eventually(t, "it is deleted", func() bool { return !b.shared.has("orphan") })
}
