package apiserver_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// fakeKcp stands for kcp's virtual workspaces: it says what reached it, and streams where it is asked to watch.
type fakeKcp struct {
	url string

	mu   sync.Mutex
	last *http.Request
	// next lets the stream go on to its second event.
	next chan struct{}
}

func startKcp(t *testing.T, p *pki.PKI) *fakeKcp {
	t.Helper()
	pair, err := p.Server(pki.Serving, "kcp")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	kcp := &fakeKcp{next: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(kcp.serve))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: pool(p.CAFile(pki.RequestHeader), p.CAFile(pki.Client)),
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	kcp.url = server.URL
	return kcp
}

func (k *fakeKcp) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	k.last = r.Clone(r.Context())
	k.mu.Unlock()
	w.Header().Set("Warning", `299 - "from kcp"`)
	fmt.Fprintln(w, "from kcp")
	if r.URL.Query().Get("watch") != "true" {
		return
	}
	w.(http.Flusher).Flush()
	select {
	case <-k.next:
		fmt.Fprintln(w, "and on")
	case <-r.Context().Done():
	}
}

// received is the last request, and the common name of the certificate that it came with.
func (k *fakeKcp) received() (*http.Request, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		return nil, ""
	}
	for _, certificate := range k.last.TLS.PeerCertificates {
		return k.last, certificate.Subject.CommonName
	}
	return k.last, ""
}

func (k *fakeKcp) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = nil
}

func pool(files ...string) *x509.CertPool {
	authorities := x509.NewCertPool()
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil {
			authorities.AppendCertsFromPEM(content)
		}
	}
	return authorities
}
