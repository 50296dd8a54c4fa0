package integration

import (
	"testing"

	"go.opendefense.cloud/krop/test/testbed"
)

// TestStoryInTheShapeOfProduction plays the whole story where kcp is made up of a shard without virtual workspaces,
// the virtual-workspaces server, a user-facing front-proxy, and a router in front of krop.
func TestStoryInTheShapeOfProduction(t *testing.T) {
	production, err := testbed.Start(t.Context(), testbed.Options{Topology: testbed.Production, Progress: t.Output()})
	must(t, err)
	t.Cleanup(func() {
		if err := production.Stop(); err != nil {
			t.Error(err)
		}
	})
	play(t, production)
}
