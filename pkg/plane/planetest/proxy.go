package planetest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Workspaces is a proxy that makes an API server look like kcp: it takes off
// /services/apiexport/<cluster>/<export> and /clusters/<cluster>. All workspaces are the same server.
type Workspaces struct {
	*httptest.Server

	mu   sync.Mutex
	fail func(http.ResponseWriter, *http.Request) bool
	seen []string
}

// prefix is what comes before the paths that an API server knows.
var prefix = regexp.MustCompile(`^(/services/apiexport/[^/]+/[^/]+)?(/clusters/[^/]+)?`)

// NewWorkspaces starts the proxy. Callers keep their own credentials.
func NewWorkspaces(t testing.TB, server *rest.Config) *Workspaces {
	t.Helper()
	transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: server.TLSClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	backend, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	w := &Workspaces{}
	forward := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.Out.URL.Path = prefix.ReplaceAllString(r.In.URL.Path, "")
		},
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if !w.failed(response, request) {
			forward.ServeHTTP(response, request)
		}
	}))
	t.Cleanup(w.Server.Close)
	return w
}

// User is a client configuration for the proxy with another's credentials.
func (w *Workspaces) User(user *rest.Config) *rest.Config {
	return &rest.Config{Host: w.URL, BearerToken: user.BearerToken, QPS: -1}
}

// Fail makes the proxy answer requests itself where fail does so and returns true. Nil ends it.
func (w *Workspaces) Fail(fail func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = fail
}

// Seen returns method and path of the requests so far, and forgets them.
func (w *Workspaces) Seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

func (w *Workspaces) failed(response http.ResponseWriter, request *http.Request) bool {
	w.mu.Lock()
	w.seen = append(w.seen, request.Method+" "+request.URL.Path)
	fail := w.fail
	w.mu.Unlock()
	return fail != nil && fail(response, request)
}
