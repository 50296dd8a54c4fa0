package publish

import (
	"testing"

	"k8s.io/client-go/rest"
)

func TestTheEndpointOfTheOwnShardIsReachedAtTheConfiguredHost(t *testing.T) {
	for name, test := range map[string]struct {
		virtual   string
		addresses []string
		want      string
	}{
		"kcp's own host": {
			"", []string{"https://krop:7443/services/apiexport/p/e"},
			"https://kcp:6443/services/apiexport/p/e",
		},
		"virtual workspaces elsewhere": {
			"https://vw:6444", []string{"https://krop:7443/services/apiexport/p/e"},
			"https://vw:6444/services/apiexport/p/e",
		},
		"virtual workspaces below a path": {
			"https://vw:6444/kcp/", []string{"https://krop:7443/services/apiexport/p/e"},
			"https://vw:6444/kcp/services/apiexport/p/e",
		},
		"another shard, too": {
			"", []string{"https://other:7443/services/apiexport/x/e", "https://krop:7443/services/apiexport/p/e"},
			"https://kcp:6443/services/apiexport/p/e",
		},
		"other shards only": {
			"", []string{"https://other:7443/services/apiexport/x/e", "https://third:7443/services/apiexport/x/e"},
			"",
		},
		"none": {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := newKCP(Config{
				REST: &rest.Config{Host: "https://kcp:6443/clusters/root:krop"}, ExternalURL: "https://krop:7443/", VirtualWorkspacesURL: test.virtual,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := k.reachable(test.addresses); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAddressesWithoutSchemeAreRefused(t *testing.T) {
	good := &rest.Config{Host: "https://kcp:6443"}
	for name, config := range map[string]Config{
		"kcp":                {REST: &rest.Config{Host: "kcp:6443"}, ExternalURL: "https://krop"},
		"krop":               {REST: good, ExternalURL: "krop:7443"},
		"virtual workspaces": {REST: good, ExternalURL: "https://krop", VirtualWorkspacesURL: "vw"},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
