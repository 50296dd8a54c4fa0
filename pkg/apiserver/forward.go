package apiserver

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

// forwardsPerPeer is how many requests of one peer are forwarded at one time, watches among them. kcp's own
// controllers, which come as one shard, hold some dozens; whoever needs a thousand keeps others out.
const forwardsPerPeer = 1000

// forwarder passes requests for other virtual workspaces on to kcp, in the caller's name.
type forwarder struct {
	limits peerLimits
	// named speaks with the proxy's certificate, which lets it name the caller in headers.
	named *httputil.ReverseProxy
	// plain has no certificate: a token must be all that kcp learns, or kcp would take the proxy for the caller.
	plain *httputil.ReverseProxy
}

// forwarding is where to, and over which connections.
type forwarding struct {
	target *url.URL
	// named presents the proxy's certificate, plain none.
	named, plain http.RoundTripper
}

func newForwarder(to forwarding) *forwarder {
	return &forwarder{
		limits: peerLimits{most: forwardsPerPeer, running: map[string]int{}},
		named:  reverseProxy(to.target, to.named, nameCaller),
		plain:  reverseProxy(to.target, to.plain, passToken),
	}
}

// ServeHTTP implements http.Handler.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := callerFrom(r.Context())
	if who == nil {
		writeStatus(w, r, forbidden("authentication is required"))
		return
	}
	leave, ok := f.limits.enter(peerOf(who, r))
	if !ok {
		writeStatus(w, r, tooMany("too many requests of yours are being forwarded to kcp"))
		return
	}
	defer leave()
	switch {
	case who.trust == trustBearer:
		f.plain.ServeHTTP(w, r)
	default:
		f.named.ServeHTTP(w, r)
	}
}

func reverseProxy(target *url.URL, over http.RoundTripper, identify func(*httputil.ProxyRequest)) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     over,
		FlushInterval: -1, // a watch's events are passed on as they come
		Rewrite: func(proxied *httputil.ProxyRequest) {
			proxied.SetURL(target)
			dropIdentity(proxied.Out.Header)
			identify(proxied)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, r.Context().Err()) {
				klog.FromContext(r.Context()).Error(err, "Forwarding to kcp failed", "path", r.URL.Path)
			}
			writeStatus(w, r, notYet("kcp's virtual workspaces can't be reached"))
		},
	}
}

// dropIdentity takes off whatever could name someone. Underscores count as hyphens: some servers
// between here and there turn one into the other.
func dropIdentity(header http.Header) {
	for name := range header {
		plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if plain == "authorization" || strings.HasPrefix(plain, "x-remote-") || strings.HasPrefix(plain, "impersonate-") {
			delete(header, name)
		}
	}
}

// nameCaller names who was authenticated here, with extras: among them are the limits of scoped users.
func nameCaller(proxied *httputil.ProxyRequest) {
	who := callerFrom(proxied.In.Context())
	transport.SetAuthProxyHeaders(proxied.Out, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
}

// passToken is the one place where a token leaves krop.
func passToken(proxied *httputil.ProxyRequest) {
	if token, ok := bearerFrom(proxied.In.Context()); ok {
		proxied.Out.Header.Set("Authorization", token.header)
	}
}
