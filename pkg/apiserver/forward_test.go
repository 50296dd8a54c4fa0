package apiserver_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

const elsewhere = "/services/apiexport/provider1/widgets.example.org/clusters/*/apis/example.org/v1/others"

func TestForwardingNamesTheCallerAndNobodyElse(t *testing.T) {
	b := start(t)
	for name, test := range map[string]struct {
		who     *pki.Pair
		headers []string
		user    string
		groups  []string
	}{
		"certificate": {
			who:  b.client(t, pki.Client, "alice", "team", "system:masters", "system:kcp:logical-cluster-admin", "system:kcp:initializer:x"),
			user: "alice", groups: []string{"team", "system:authenticated"},
		},
		"certificate with forged headers": {
			who:     b.client(t, pki.Client, "mallory"),
			headers: []string{"X-Remote-User: admin", "x-remote-group: system:kcp:admin", "X-Remote-Extra-Scopes: all", "X_Remote_User: admin", "X-REMOTE-GROUP: other"},
			user:    "mallory", groups: []string{"system:authenticated"},
		},
		"certificate and token": {
			who: b.client(t, pki.Client, "alice2", "team"), headers: []string{"Authorization: Bearer abc"},
			user: "alice2", groups: []string{"team", "system:authenticated"},
		},
		"front proxy": {
			who: b.client(t, pki.RequestHeader, frontProxy), headers: []string{"X-Remote-User: bob", "X-Remote-Group: team"},
			user: "bob", groups: []string{"team", "system:authenticated"},
		},
		"shard": {who: b.client(t, pki.Client, shard, "system:masters"), user: shard, groups: []string{"system:authenticated"}},
	} {
		b.kcp.forget()
		got := b.get(t, test.who, elsewhere+"?limit=5", test.headers...)
		if got.code != http.StatusOK || !strings.Contains(got.body, "from kcp") || got.header.Get("Warning") == "" {
			t.Errorf("%s: %d %s", name, got.code, got.body)
			continue
		}
		request, proxy := b.kcp.received()
		if request.RequestURI != elsewhere+"?limit=5" {
			t.Errorf("%s: kcp was asked for %s", name, request.RequestURI)
		}
		if proxy != "krop-proxy" {
			t.Errorf("%s: came with the certificate of %q", name, proxy)
		}
		if users := request.Header.Values("X-Remote-User"); !slices.Equal(users, []string{test.user}) {
			t.Errorf("%s: named %v, want %q", name, users, test.user)
		}
		if groups := request.Header.Values("X-Remote-Group"); !slices.Equal(groups, test.groups) {
			t.Errorf("%s: groups %v, want %v", name, groups, test.groups)
		}
		wantNoHeader(t, name, request, "Authorization", "X-Remote-Extra-Scopes", "X_Remote_User", "X-Forwarded-For")
	}
}

func TestForwardingPassesScopesOn(t *testing.T) {
	b := start(t)
	b.get(t, b.client(t, pki.RequestHeader, frontProxy), elsewhere, "X-Remote-User: bob", "X-Remote-Extra-Authentication.kcp.io%2fscopes: cluster:x")
	request, _ := b.kcp.received()
	if got := request.Header.Values("X-Remote-Extra-Authentication.kcp.io%2fscopes"); !slices.Equal(got, []string{"cluster:x"}) {
		t.Errorf("scopes %v: without them a scoped user may more than it should (%v)", got, request.Header)
	}
}

func TestTokensArePassedOnWithoutCertificateAndWithoutNames(t *testing.T) {
	b := start(t)
	got := b.get(t, nil, elsewhere, "Authorization: Bearer abc", "X-Remote-User: admin")
	if got.code != http.StatusOK {
		t.Fatalf("%d: %s", got.code, got.body)
	}
	request, proxy := b.kcp.received()
	if proxy != "" {
		t.Errorf("came with the certificate of %q: kcp would take that for the caller", proxy)
	}
	if request.Header.Get("Authorization") != "Bearer abc" {
		t.Error("the token is lost")
	}
	wantNoHeader(t, "token", request, "X-Remote-User", "X-Remote-Group")
}

func TestForwardingRefuses(t *testing.T) {
	b := start(t)
	for name, test := range map[string]struct {
		who     *pki.Pair
		path    string
		headers []string
		code    int
	}{
		"nobody":                   {path: elsewhere, code: http.StatusUnauthorized},
		"basic authentication":     {path: elsewhere, headers: []string{"Authorization: Basic abc"}, code: http.StatusUnauthorized},
		"two tokens":               {path: elsewhere, headers: []string{"Authorization: Bearer a", "Authorization: Bearer b"}, code: http.StatusUnauthorized},
		"unknown authority":        {who: b.client(t, pki.HostClient, "alice"), path: elsewhere, headers: []string{"Authorization: Bearer abc"}, code: http.StatusUnauthorized},
		"acting as someone else":   {who: b.client(t, pki.Client, "alice"), path: elsewhere, headers: []string{"Impersonate-User: admin"}, code: http.StatusForbidden},
		"out of services":          {who: b.client(t, pki.Client, "alice"), path: "/services/../clusters/root/api/v1/secrets", code: http.StatusBadRequest},
		"out of services, encoded": {who: b.client(t, pki.Client, "alice"), path: "/services/apiexport/%2e%2e/%2e%2e/clusters/root", code: http.StatusBadRequest},
	} {
		b.kcp.forget()
		if got := b.get(t, test.who, test.path, test.headers...); got.code != test.code {
			t.Errorf("%s: %d, want %d", name, got.code, test.code)
		}
		if request, _ := b.kcp.received(); request != nil {
			t.Errorf("%s: reached kcp", name)
		}
	}
}

func TestNothingIsForwardedUnlessConfigured(t *testing.T) {
	b := start(t, func(o *apiserver.Options) {
		o.VirtualWorkspaces.ProxyCertFile, o.VirtualWorkspaces.ProxyKeyFile = "", ""
	})
	if got := b.get(t, b.client(t, pki.Client, shard), elsewhere); got.code != http.StatusNotFound {
		t.Errorf("%d, want 404", got.code)
	}
	if request, _ := b.kcp.received(); request != nil {
		t.Error("reached kcp")
	}
}

func TestForwardedWatchesStream(t *testing.T) {
	b := start(t)
	connection, err := b.dial(b.client(t, pki.Client, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(connection, "GET %s?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n", elsewhere)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() || lines.Text() != "from kcp" {
		t.Fatalf("first event %q", lines.Text())
	}
	close(b.kcp.next) // only now does kcp send the second
	if !lines.Scan() || lines.Text() != "and on" {
		t.Errorf("second event %q", lines.Text())
	}
}

func wantNoHeader(t *testing.T, name string, request *http.Request, headers ...string) {
	t.Helper()
	for _, header := range headers {
		if values, found := request.Header[header]; found {
			t.Errorf("%s: %s was passed on: %v", name, header, values)
		}
	}
}
