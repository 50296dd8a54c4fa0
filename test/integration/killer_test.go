package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"go.opendefense.cloud/krop/test/testbed"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// moment is a point on the way of a write: before the nth of krop's writes reaches kcp, or after it was answered
// and before krop hears of it. Dry runs count as writes. So the moments around the last dry run are before the
// instance is stored or about then, those around the first real write after it.
type moment struct {
	write int
	after bool
}

// killer stands between krop and kcp and ends krop, as kill -9 does, at a moment.
type killer struct {
	url   string
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	armed  *moment
	writes int
	killed chan struct{} // closed when it has happened
}

// startKiller starts the proxy and starts krop anew behind it. Afterwards krop runs as before.
func startKiller(t *testing.T) *killer {
	t.Helper()
	config, err := bed.Config(testbed.Admin)
	must(t, err)
	kcp, err := url.Parse(config.Host)
	must(t, err)
	k := &killer{killed: make(chan struct{})}
	k.proxy = &httputil.ReverseProxy{
		FlushInterval: -1, // watches
		Transport:     &http.Transport{TLSClientConfig: asKrop(t), MaxIdleConnsPerHost: 64},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: kcp.Scheme, Host: kcp.Host})
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	k.listen(t)
	must(t, bed.Krop.Stop())
	k.startKrop(t)
	t.Cleanup(func() { // the test's context has ended by then
		bed.Krop.Kill()
		must(t, bed.Krop.Start(context.Background()))
	})
	return k
}

// asKrop is what krop shows kcp.
func asKrop(t *testing.T) *tls.Config {
	t.Helper()
	files, err := bed.PKI().Client(pki.Client, pki.Identity{Name: "krop"})
	must(t, err)
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	must(t, err)
	ca, err := os.ReadFile(bed.PKI().CAFile(pki.Serving))
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
}

func (k *killer) listen(t *testing.T) {
	t.Helper()
	files, err := bed.PKI().Server(pki.Serving, "killer")
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must(t, err)
	k.url = "https://localhost:" + port
	server := &http.Server{Handler: k}
	go func() { _ = server.ServeTLS(listener, files.CertFile, files.KeyFile) }()
	t.Cleanup(func() { _ = server.Close() })
}

// startKrop starts krop with the proxy in place of kcp.
func (k *killer) startKrop(t *testing.T) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["kcp"] = &clientcmdapi.Cluster{Server: k.url, CertificateAuthority: bed.PKI().CAFile(pki.Serving)}
	config.Contexts["kcp"] = &clientcmdapi.Context{Cluster: "kcp"}
	config.CurrentContext = "kcp"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, file))
	must(t, bed.Krop.Start(t.Context(), testbed.WithFlags("--kubeconfig="+file, "--virtual-workspaces-url="+k.url)))
}

// ServeHTTP forwards, and kills krop if the moment has come.
func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := k.moment(r)
	if at != nil && !at.after {
		k.kill()
		return
	}
	if at == nil {
		k.proxy.ServeHTTP(w, r)
		return
	}
	k.proxy.ServeHTTP(&unheard{header: http.Header{}}, r)
	k.kill()
}

// unheard takes an answer that nobody gets.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header         { return u.header }
func (u *unheard) Write(b []byte) (int, error) { return len(b), nil }
func (u *unheard) WriteHeader(int)             {}

// moment counts a write of a child, and returns the moment if this is the one.
func (k *killer) moment(r *http.Request) *moment {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.armed == nil || r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/configmaps") {
		return nil
	}
	k.writes++
	if k.writes != k.armed.write {
		return nil
	}
	at := k.armed
	k.armed = nil
	return at
}

func (k *killer) kill() {
	bed.Krop.Kill()
	close(k.killed)
}

// arm sets the moment. What it returns is closed when krop was killed.
func (k *killer) arm(at moment) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed, k.writes, k.killed = &at, 0, make(chan struct{})
	return k.killed
}

// disarm says whether the moment was still to come.
func (k *killer) disarm() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	waiting := k.armed != nil
	k.armed = nil
	return waiting
}
