package apiserver

import (
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestRouteOfAnExport(t *testing.T) {
	export := v1alpha1.ExportKey{Cluster: "provider1", Name: "widgets.example.org"}
	for escaped, want := range map[string]struct {
		cluster logicalcluster.Name
		rest    string
	}{
		"/services/krop/provider1/widgets.example.org/clusters/consumer1/apis/example.org/v1/widgets": {"consumer1", "/apis/example.org/v1/widgets"},
		"/services/krop/provider1/widgets.example.org/clusters/*/apis/example.org/v1":                 {"*", "/apis/example.org/v1"},
		"/services/krop/provider1/widgets.example.org/clusters/%2A/apis/example.org/v1":               {"*", "/apis/example.org/v1"},
		"/services/krop/provider1/widgets.example.org/clusters/root/openapi/v3":                       {"root", "/openapi/v3"},
		"/services/krop/provider1/widgets.example.org/clusters/consumer1/version":                     {"consumer1", "/version"},
	} {
		got := parseRoute(escaped)
		if got.surface != surfaceExport || got.export != export || got.cluster != want.cluster || got.rest != want.rest {
			t.Errorf("%s: %+v", escaped, got)
		}
	}
}

func TestPathsThatCouldBeReadInTwoWaysAreRefused(t *testing.T) {
	base := "/services/krop/provider1/widgets.example.org/clusters/consumer1"
	for _, escaped := range []string{
		"/services",
		"/services/",
		"/services/krop",
		"/services/krop/",
		"/services/krop/provider1/widgets.example.org",
		"/services/krop/provider1/widgets.example.org/clusters",
		"/services/krop/provider1/widgets.example.org/clusters/consumer1",
		"/services/krop/provider1/widgets.example.org/clusters/consumer1/",
		"/services/krop/provider1/widgets.example.org/Clusters/consumer1/apis",
		"/services/%6Brop/provider1/widgets.example.org/clusters/consumer1/apis",
		"/services/krop/provider1/../other/clusters/consumer1/apis",
		"/services/krop/../apiexport/provider1/x",
		"/services/apiexport/../krop/provider1/widgets.example.org/clusters/consumer1/apis",
		"/services/apiexport/%2e%2e/%2e%2e/clusters/root/api/v1/secrets",
		"/services/apiexport/..%2f..%2fclusters/root",
		"/services/apiexport//x",
		"/services/api%65xport/x",
		"/services//krop/provider1/widgets.example.org/clusters/consumer1/apis",
		"/services/krop//provider1/widgets.example.org/clusters/consumer1/apis",
		"/services/krop/*/widgets.example.org/clusters/consumer1/apis",
		"/services/krop/provider1/*/clusters/consumer1/apis",
		"/services/krop/provider1/Widgets/clusters/consumer1/apis",
		"/services/krop/root:provider/widgets.example.org/clusters/consumer1/apis",
		"/services/krop/provider1/widgets.example.org/clusters/root:consumer/apis",
		"/services/krop/provider1/widgets.example.org/clusters/system:admin/apis",
		"/services/krop/provider1/widgets.example.org/clusters/%2e%2e/apis",
		"/services/krop/provider1/widgets.example.org/clusters/../apis",
		"/services/krop/provider1/widgets.example.org/clusters/consumer1%2fapis/x",
		"/services/krop/provider1/widgets.example.org/clusters/%63onsumer1/apis",
		"/services/krop/provider1/widgets.example.org/clusters/consumer1%00/apis",
		"/services/krop/provider1/widgets.example.org/clusters/Consumer1/apis",
		"/services/krop/provider1/widgets.example.org/clusters/**/apis",
		"/services/krop/provider1/widgets.example.org/clusters/" + strings.Repeat("a", 64) + "/apis",
		"/services/krop/provider1%2fwidgets.example.org/clusters/consumer1/apis/x/y",
		base + "/apis/example.org/v1/namespaces/../widgets",
		base + "/apis/example.org/v1/namespaces/%2e%2e/widgets",
		base + "/apis/example.org/v1/namespaces/*/widgets/x",
		base + "/apis/example.org/v1/namespaces/%2A/widgets/x",
		base + "/apis/*/v1/widgets",
		base + "/apis/example.org/v1/*",
		base + "/apis/example.org%2fv1/widgets",
		base + "/apis/example.org/v1/widgets/a%2fb",
		base + "/apis/example.org/v1/widgets/a%252fb",
		base + "/apis/example.org/v1/widgets/%61",
		base + "/apis/example.org/v1/widgets/a%zz",
		base + "/apis/example.org/v1/widgets/a\\b",
		base + "/apis/example.org//v1/widgets",
		base + "/apis/example.org/v1/widgets/",
		base + "/apis/./v1/widgets",
		base + "/livez",
		base + "/metrics",
		base + "/api/v1/secrets",
		base + "/services/krop/provider1/widgets.example.org/clusters/consumer1/apis",
		"/%73ervices/krop/provider1/widgets.example.org/clusters/consumer1/apis",
		"/livez%2f..",
	} {
		if got := parseRoute(escaped); got.surface != surfaceRefused || got.refusal == nil {
			t.Errorf("%s: surface %d, want refused", escaped, got.surface)
		}
	}
}

func TestOtherPathsAreTheServersOrKcps(t *testing.T) {
	for escaped, want := range map[string]surface{
		"/livez":   surfaceServer,
		"/apis":    surfaceServer,
		"/":        surfaceServer,
		"":         surfaceServer,
		"*":        surfaceServer,
		"//livez":  surfaceServer, // not cleaned, so it is no known path
		"/Service": surfaceServer,
		"/services/apiexport/provider1/widgets/clusters/*/apis/a/v1/b":                                     surfaceForward,
		"/services/Krop/provider1":                                                                         surfaceForward,
		"/services/apiexport/p/e/clusters/c/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin": surfaceForward,
	} {
		if got := parseRoute(escaped); got.surface != want {
			t.Errorf("%q: surface %d, want %d", escaped, got.surface, want)
		}
	}
}
