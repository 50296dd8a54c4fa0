package apiserver

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// slowKcp holds what is forwarded to it until it is let go.
type slowKcp struct{ entered, release chan struct{} }

func (k slowKcp) RoundTrip(*http.Request) (*http.Response, error) {
	k.entered <- struct{}{}
	<-k.release
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestForwardedRequestsAreLimitedPerPeer(t *testing.T) {
	kcp := slowKcp{entered: make(chan struct{}, 10), release: make(chan struct{})}
	forward := newForwarder(forwarding{target: &url.URL{Scheme: "https", Host: "kcp"}, named: kcp, plain: kcp})
	forward.limits.most = 1
	ask := func(name string, how trust, address string) int {
		r := httptest.NewRequest(http.MethodGet, "/services/apiexport/x/y/clusters/*/apis", nil)
		r.RemoteAddr = address
		who := &caller{Info: &user.DefaultInfo{Name: name}, trust: how}
		w := httptest.NewRecorder()
		forward.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), who)))
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		return w.Code
	}
	const here, elsewhere = "127.0.0.1:1000", "127.0.0.2:1000"
	codes := make(chan int, 10)
	for _, first := range []func() int{
		func() int { return ask("alice", trustUser, here) },
		func() int { return ask("bob", trustUser, here) },
		func() int { return ask(user.Anonymous, trustBearer, here) },
		func() int { return ask(user.Anonymous, trustBearer, elsewhere) },
	} {
		go func() { codes <- first() }()
		<-kcp.entered // each is a peer of its own
	}
	if code := ask("alice", trustUser, elsewhere); code != http.StatusTooManyRequests {
		t.Errorf("one user's second request from elsewhere: %d", code)
	}
	if code := ask(user.Anonymous, trustBearer, "127.0.0.1:2000"); code != http.StatusTooManyRequests {
		t.Errorf("a second token from one machine: %d", code)
	}
	close(kcp.release)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a peer's first request: %d", code)
		}
	}
	if code := ask("alice", trustUser, here); code != http.StatusOK || len(forward.limits.running) != 0 {
		t.Errorf("after the others have ended: %d, still counted: %v", code, forward.limits.running)
	}
}
