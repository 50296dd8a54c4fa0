package publish_test

import (
	"strings"
	"testing"

	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/test/testbed"
)

func TestBootstrapAgainChangesNothing(t *testing.T) {
	w := start(t)
	outcomes := map[string]string{}
	export, err := publish.Bootstrap(t.Context(), w.bootstrapConfig(func(object, outcome string) { outcomes[object] = outcome }))
	if err != nil {
		t.Fatal(err)
	}
	if export != w.home {
		t.Errorf("got export %s, want %s", export, w.home)
	}
	if len(outcomes) == 0 {
		t.Error("nothing was reported")
	}
	for object, outcome := range outcomes {
		if outcome != "unchanged" {
			t.Errorf("%s: got %s, want unchanged", object, outcome)
		}
	}
}

func TestKropFindsItsOwnExport(t *testing.T) {
	w := start(t)
	export, err := w.publisher(t).Home(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if export != w.home {
		t.Errorf("got %s, want %s", export, w.home)
	}
}

func TestApplyingTheProviderManifestsAgainChangesNothing(t *testing.T) {
	w := start(t)
	output := w.kubectl(t, testbed.Provider, "apply", "-f", "../../manifests/provider")
	for _, line := range strings.Split(strings.TrimSpace(output), "\n") {
		if !strings.HasSuffix(line, " unchanged") {
			t.Errorf("got %q, want it unchanged", line)
		}
	}
}

func TestProvidersReachKropThroughTheirBinding(t *testing.T) {
	w := start(t)
	w.kubectl(t, testbed.Provider, "get", "resourcegraphdefinitions")
	want := "GET /services/krop/" + w.home.Cluster.String() + "/" + w.home.Name + "/clusters/" + w.cluster(t, testbed.Provider).String() +
		"/apis/krop.opendefense.cloud/v1alpha1/resourcegraphdefinitions"
	if ok, asked := w.standIn.saw(want); !ok {
		t.Errorf("kcp did not ask\n%s\nbut\n%s", want, asked)
	}
}
