package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// TestTrust asks as everybody who might come, in one cluster and across all.
func TestTrust(t *testing.T) {
	b := start(t)
	everything := func(authorizationv1.SubjectAccessReviewSpec) bool { return true }
	nothing := func(authorizationv1.SubjectAccessReviewSpec) bool { return false }
	const ok, unauthorized, forbidden = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden

	for _, test := range []struct {
		name    string
		who     *pki.Pair
		headers []string
		review  func(authorizationv1.SubjectAccessReviewSpec) bool // nil: the claim isn't accepted
		one     int                                                // in a cluster that is bound
		all     int                                                // across clusters
		// reviewed is the user that the workspace was asked about.
		reviewed string
	}{
		{name: "no certificate", one: unauthorized, all: unauthorized},
		{name: "no certificate, forged headers", headers: []string{"X-Remote-User: " + shard}, one: unauthorized, all: unauthorized},
		{name: "bearer token", headers: []string{"Authorization: Bearer abc"}, one: unauthorized, all: unauthorized},
		{name: "shard", who: b.client(t, pki.Client, shard), one: ok, all: ok},
		{name: "shard, with forged headers", who: b.client(t, pki.Client, shard), headers: []string{"X-Remote-User: alice", "X-Remote-Group: system:masters"}, one: ok, all: ok},
		{name: "shard, with a bearer token", who: b.client(t, pki.Client, shard), headers: []string{"Authorization: Bearer abc"}, one: ok, all: ok},
		{name: "shard, acting as someone else", who: b.client(t, pki.Client, shard), headers: []string{"Impersonate-User: alice"}, one: forbidden, all: forbidden},
		{name: "shard's name, authority of proxies", who: b.client(t, pki.RequestHeader, shard), one: unauthorized, all: unauthorized},
		{name: "shard's name, authority of another cluster", who: b.client(t, pki.HostClient, shard), one: unauthorized, all: unauthorized},
		{name: "shard's name in another case", who: b.client(t, pki.Client, "SHARD-root"), review: nothing, one: forbidden, all: forbidden, reviewed: "SHARD-root"},
		{name: "shard's name as a group", who: b.client(t, pki.Client, "eve", shard), review: nothing, one: forbidden, all: forbidden, reviewed: "eve"},
		{name: "ordinary certificate, claim not accepted", who: b.client(t, pki.Client, "alice"), one: forbidden, all: forbidden, reviewed: "alice"},
		{name: "ordinary certificate, no rights", who: b.client(t, pki.Client, "alice"), review: nothing, one: forbidden, all: forbidden, reviewed: "alice"},
		{name: "ordinary certificate, with rights", who: b.client(t, pki.Client, "alice"), review: everything, one: ok, all: forbidden, reviewed: "alice"},
		{name: "system:masters", who: b.client(t, pki.Client, "root", "system:masters"), review: nothing, one: forbidden, all: forbidden, reviewed: "root"},
		{name: "ordinary certificate, forged header", who: b.client(t, pki.Client, "alice"), headers: []string{"X-Remote-User: " + shard}, review: nothing, one: forbidden, all: forbidden, reviewed: "alice"},
		{name: "ordinary certificate, forged header in lower case", who: b.client(t, pki.Client, "alice"), headers: []string{"x-remote-user: " + shard}, review: nothing, one: forbidden, all: forbidden, reviewed: "alice"},
		{name: "ordinary certificate, forged header with underscores", who: b.client(t, pki.Client, "alice"), headers: []string{"X_Remote_User: " + shard}, review: nothing, one: forbidden, all: forbidden, reviewed: "alice"},
		{name: "front proxy", who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"X-Remote-User: alice"}, review: everything, one: ok, all: forbidden, reviewed: "alice"},
		{name: "front proxy, header in odd case", who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"x-ReMoTe-UsEr: alice"}, review: everything, one: ok, all: forbidden, reviewed: "alice"},
		{name: "front proxy, speaking for a shard", who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"X-Remote-User: " + shard}, review: nothing, one: forbidden, all: forbidden, reviewed: shard},
		{name: "front proxy, encoded shard", who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"X-Remote-User: shard%2Droot"}, review: nothing, one: forbidden, all: forbidden, reviewed: "shard%2Droot"},
		{name: "front proxy, naming nobody", who: b.client(t, pki.RequestHeader, frontProxy), one: unauthorized, all: unauthorized},
		{name: "front proxy, naming two", who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"X-Remote-User: alice", "X-Remote-User: " + shard}, review: everything, one: unauthorized, all: unauthorized},
		{name: "front proxy, for system:masters", who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"X-Remote-User: root", "X-Remote-Group: system:masters"}, review: nothing, one: forbidden, all: forbidden, reviewed: "root"},
		{name: "front proxy's name, authority of users", who: b.client(t, pki.Client, frontProxy), headers: []string{"X-Remote-User: alice"}, review: nothing, one: forbidden, all: forbidden, reviewed: frontProxy},
		{name: "another proxy", who: b.client(t, pki.RequestHeader, "other-proxy"), headers: []string{"X-Remote-User: alice"}, review: everything, one: unauthorized, all: unauthorized},
		{name: "router, for a shard", who: b.client(t, pki.RequestHeader, router), headers: []string{"X-Remote-User: " + shard}, one: ok, all: ok},
		{name: "router, for a user", who: b.client(t, pki.RequestHeader, router), headers: []string{"X-Remote-User: alice"}, review: nothing, one: forbidden, all: forbidden, reviewed: "alice"},
		{name: "router, naming two", who: b.client(t, pki.RequestHeader, router), headers: []string{"X-Remote-User: " + shard, "X-Remote-User: alice"}, one: unauthorized, all: unauthorized},
		{name: "router, naming nobody", who: b.client(t, pki.RequestHeader, router), one: unauthorized, all: unauthorized},
		{name: "router's name, authority of users", who: b.client(t, pki.Client, router), headers: []string{"X-Remote-User: " + shard}, review: nothing, one: forbidden, all: forbidden, reviewed: router},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.reviews.answerWith(test.review, nil)
			if got := b.get(t, test.who, base+consumer.String()+apis+"/namespaces/default/widgets", test.headers...); got.code != test.one {
				t.Errorf("one cluster: %d, want %d: %s", got.code, test.one, got.body)
			}
			asked, spec, cluster := b.reviews.seen()
			if spec.User != test.reviewed && asked > 0 || (asked > 0) != (test.reviewed != "") {
				t.Errorf("the workspace was asked %d times, about %q, want %q", asked, spec.User, test.reviewed)
			}
			if asked > 0 && cluster != consumer {
				t.Errorf("reviewed in %q", cluster)
			}
			if slices.Contains(spec.Groups, "system:masters") {
				t.Error("reviewed as a member of system:masters")
			}
			if got := b.get(t, test.who, base+"*"+apis+"/widgets", test.headers...); got.code != test.all {
				t.Errorf("all clusters: %d, want %d: %s", got.code, test.all, got.body)
			}
			b.reviews.answerWith(test.review, nil)
			b.wantAlikeEverywhere(t, test.who, test.headers, test.one)
		})
	}
}

// wantAlikeEverywhere checks that discovery, OpenAPI and the version are no way around.
func (b *bed) wantAlikeEverywhere(t *testing.T, who *pki.Pair, headers []string, want int) {
	t.Helper()
	for _, path := range []string{"/apis", "/apis/example.org", apis, "/openapi/v3", "/openapi/v3" + apis, "/version"} {
		got := b.get(t, who, base+consumer.String()+path, headers...)
		anonymous := want == http.StatusUnauthorized && got.code == http.StatusForbidden // known as nobody, for /version
		if got.code != want && !anonymous {
			t.Errorf("%s: %d, want %d", path, got.code, want)
		}
	}
}

func TestReviewNamesWhatIsAskedFor(t *testing.T) {
	b := start(t)
	b.reviews.answerWith(func(authorizationv1.SubjectAccessReviewSpec) bool { return true }, nil)
	proxy := b.client(t, pki.RequestHeader, frontProxy)
	b.get(t, proxy, base+consumer.String()+apis+"/namespaces/default/widgets/one/status",
		"X-Remote-User: alice", "X-Remote-Group: team", "X-Remote-Group: system:kcp:logical-cluster-admin", "X-Remote-Extra-Authentication.kcp.io%2fscopes: cluster:x")
	_, spec, _ := b.reviews.seen()
	want := authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Group: "example.org", Version: "v1", Resource: "widgets", Subresource: "status", Name: "one"}
	if spec.ResourceAttributes == nil || *spec.ResourceAttributes != want {
		t.Errorf("asked for %+v, want %+v", spec.ResourceAttributes, want)
	}
	if !slices.Equal(spec.Groups, []string{"team", "system:authenticated"}) {
		t.Errorf("groups %v", spec.Groups)
	}
	if got := spec.Extra["authentication.kcp.io/scopes"]; !slices.Equal(got, []string{"cluster:x"}) {
		t.Errorf("the scopes that limit the user are lost: %v", spec.Extra)
	}
}

func TestRefusedUserIsToldWhichClaimToAccept(t *testing.T) {
	b := start(t)
	got := b.get(t, b.client(t, pki.Client, "alice"), base+consumer.String()+apis+"/namespaces/default/widgets")
	if got.code != http.StatusForbidden || !strings.Contains(got.body, "subjectaccessreviews") {
		t.Errorf("%d: %s", got.code, got.body)
	}
}

// TestExportWithoutTheClaim is one that was published before exports asked for reviews: kcp then serves none.
func TestExportWithoutTheClaim(t *testing.T) {
	b := start(t)
	b.reviews.answerWith(nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "POST",
		schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "", "", 0, true))
	got := b.get(t, b.client(t, pki.Client, "alice"), base+consumer.String()+apis+"/namespaces/default/widgets")
	if got.code != http.StatusForbidden || !strings.Contains(got.body, "subjectaccessreviews") {
		t.Errorf("%d: %s", got.code, got.body)
	}
}

func TestUnreachableReviewIsWorthAnotherTry(t *testing.T) {
	b := start(t)
	b.reviews.answerWith(nil, http.ErrServerClosed)
	got := b.get(t, b.client(t, pki.Client, "alice"), base+consumer.String()+apis+"/namespaces/default/widgets")
	wantTryAgain(t, got)
}

func TestClusterMustHaveBoundTheExport(t *testing.T) {
	b := start(t)
	path := base + stranger.String() + apis + "/namespaces/default/widgets"
	for name, who := range map[string]*pki.Pair{"shard": b.client(t, pki.Client, shard), "user": b.client(t, pki.Client, "alice")} {
		if got := b.get(t, who, path); got.code != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", name, got.code)
		}
	}
	b.bindings.set(func(all *bindings) { all.unknown = true })
	wantTryAgain(t, b.get(t, b.client(t, pki.Client, shard), path))
}

func TestUnknownExport(t *testing.T) {
	b := start(t)
	other := apiserver.ExportPath(v1alpha1.ExportKey{Cluster: "provider1", Name: "others.example.org"}) + "/clusters/" + consumer.String() + apis
	if got := b.get(t, b.client(t, pki.Client, shard), other); got.code != http.StatusNotFound {
		t.Errorf("shard: %d, want 404", got.code)
	}
	if got := b.get(t, b.client(t, pki.Client, "alice"), other); got.code != http.StatusForbidden {
		t.Errorf("user: %d, want 403 as for an export that isn't bound", got.code)
	}
}

// wantTryAgain checks for 503 with Retry-After.
func wantTryAgain(t *testing.T, got answer) {
	t.Helper()
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("%d with Retry-After %q, want 503 with one: %s", got.code, got.header.Get("Retry-After"), got.body)
	}
}

func TestEveryRouteAsAnonymous(t *testing.T) {
	b := start(t)
	public := []string{"/livez", "/readyz", "/healthz", "/version"}
	routes := append(b.server.ListedPaths(), public...)
	routes = append(routes,
		"/", "/apis", "/api", "/openapi/v2", "/openapi/v3", "/metrics", "/debug/pprof/", "/livez/ping", "/readyz/catalog", "/version/",
		"//livez", "/livez/../metrics", "/livez%2f..%2fmetrics", "/LIVEZ", "/services", "/services/",
		"/services/krop", "/services/krop/", base+"*", base+"*/livez", base+"*/version", base+"*/apis", base+"*"+apis, base+"*"+apis+"/widgets",
		base+consumer.String()+apis+"/widgets", base+consumer.String()+"/openapi/v3", base+consumer.String()+apis+"/namespaces/default/widgets/one/status",
		"/services/apiexport/provider1/widgets/clusters/*/api/v1/secrets", "/clusters/root/api/v1/secrets")
	for _, path := range routes {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "TRACE"} {
			got := b.send(t, nil, method, path, "Content-Length: 0")
			open := slices.Contains(public, path) && method == http.MethodGet
			if open != (got.code == http.StatusOK) {
				t.Errorf("%s %s: %d", method, path, got.code)
			}
			if !open && got.code != http.StatusUnauthorized && got.code != http.StatusForbidden {
				t.Errorf("%s %s: %d, want 401 or 403", method, path, got.code)
			}
		}
	}
}

func TestOnlyMonitorsAndShardsReadMetrics(t *testing.T) {
	b := start(t)
	for name, want := range map[string]int{monitor: http.StatusOK, shard: http.StatusOK, "alice": http.StatusForbidden} {
		for _, path := range []string{"/metrics", "/readyz/catalog", "/livez/ping"} {
			if got := b.get(t, b.client(t, pki.Client, name), path); got.code != want {
				t.Errorf("%s %s: %d, want %d", name, path, got.code, want)
			}
		}
	}
	if got := b.get(t, b.client(t, pki.Client, "root", "system:masters"), "/metrics"); got.code != http.StatusForbidden {
		t.Errorf("system:masters: %d, want 403", got.code)
	}
}

// TestPathTricks sends what proxies and servers are known to read differently, as the one who may do most.
func TestPathTricks(t *testing.T) {
	b := start(t)
	who := b.client(t, pki.Client, shard)
	one := base + consumer.String()
	for _, path := range []string{
		one + apis + "/namespaces/../widgets",
		one + apis + "/namespaces/%2e%2e/widgets",
		one + apis + "/namespaces/default%2fwidgets/one",
		one + apis + "/namespaces/default/widgets/%2e%2e%2f%2e%2e",
		one + apis + "/namespaces/default/widgets/one%00",
		one + apis + "/namespaces/default//widgets",
		one + "//apis/example.org/v1/widgets",
		one + "/apis//v1/widgets",
		one + "/apis/example.org/v1/*",
		one + "/apis/*/v1/widgets",
		one + apis + "/namespaces/*/widgets/one",
		one + apis + "/namespaces/default/widgets/*",
		one + "/../" + otherConsumer.String() + apis + "/widgets",
		one + "/%2e%2e/" + otherConsumer.String() + apis + "/widgets",
		one + "%2f..%2f" + otherConsumer.String() + apis + "/widgets",
		base + "%2e%2e/clusters/" + consumer.String() + apis + "/widgets",
		base + "root:consumer" + apis + "/widgets",
		base + "CONSUMER1" + apis + "/widgets",
		base + "%63onsumer1" + apis + "/widgets",
		base + "consumer1;x=y" + apis + "/widgets",
		base + apis + "/widgets",
		base + "%252A" + apis + "/widgets",
		"/services/krop/provider1/../provider1/widgets.example.org/clusters/*" + apis + "/widgets",
		"/services/krop/provider1/widgets%2eexample.org/clusters/*" + apis + "/widgets",
		"/services/./krop/provider1/widgets.example.org/clusters/*" + apis + "/widgets",
		"//services/krop/provider1/widgets.example.org/clusters/*" + apis + "/widgets",
		"/Services/krop/provider1/widgets.example.org/clusters/*" + apis + "/widgets",
	} {
		got := b.get(t, who, path)
		if got.code != http.StatusBadRequest && got.code != http.StatusNotFound && got.code != http.StatusForbidden {
			t.Errorf("%s: %d", path, got.code)
		}
		if request, _ := b.kcp.received(); request != nil {
			t.Errorf("%s reached kcp as %s", path, request.RequestURI)
			b.kcp.forget()
		}
	}
}

func TestWildcardOnlyReads(t *testing.T) {
	b := start(t)
	who := b.client(t, pki.Client, shard)
	for _, wildcard := range []string{"*", "%2A", "%2a"} {
		if got := b.get(t, who, base+wildcard+apis+"/widgets"); got.code != http.StatusOK {
			t.Errorf("list across clusters as %s: %d: %s", wildcard, got.code, got.body)
		}
	}
	for method, path := range map[string]string{
		http.MethodPost: "/namespaces/default/widgets", http.MethodPut: "/namespaces/default/widgets/one", http.MethodPatch: "/namespaces/default/widgets/one",
		http.MethodDelete: "/namespaces/default/widgets/one", http.MethodGet: "/namespaces/default/widgets/one",
	} {
		if got := b.send(t, who, method, base+"*"+apis+path, "Content-Length: 0"); got.code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s across clusters: %d, want 405: %s", method, path, got.code, got.body)
		}
	}
	if got := b.send(t, who, http.MethodDelete, base+"*"+apis+"/namespaces/default/widgets", "Content-Length: 0"); got.code != http.StatusMethodNotAllowed {
		t.Errorf("deletecollection across clusters: %d, want 405", got.code)
	}
}
