package etcd

import (
	"context"
	"crypto/x509"
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// external is a server as an administrator runs one: on a port, with TLS, for clients with a certificate.
func external(t *testing.T, certificate transport.TLSInfo) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.UnsafeNoFsync = true
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	cfg.ClientTLSInfo = certificate
	cfg.ClientTLSInfo.ClientCertAuth = true
	cfg.ClientTLSInfo.TrustedCAFile = certificate.CertFile
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(startTimeout):
		t.Fatal("not ready")
	}
	return "https://" + server.Clients[0].Addr().String()
}

func selfSigned(t *testing.T) transport.TLSInfo {
	t.Helper()
	info, err := transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:0"}, 1, x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestExternalServersAreReachedWithTLS(t *testing.T) {
	trusted, stranger := selfSigned(t), selfSigned(t)
	endpoints := []string{external(t, trusted)}
	connect := func(config ClientConfig) error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		backend, err := Connect(ctx, BackendConfig{Client: config, Prefix: "elsewhere"})
		if err != nil {
			return err
		}
		defer backend.Close()
		if backend.Prefix() != "/elsewhere" {
			t.Errorf("prefix %s", backend.Prefix())
		}
		return backend.Check(ctx)
	}
	good := ClientConfig{Endpoints: endpoints, CertFile: trusted.CertFile, KeyFile: trusted.KeyFile, TrustedCAFile: trusted.CertFile}
	if err := connect(good); err != nil {
		t.Errorf("with the right certificates: %v", err)
	}
	for name, config := range map[string]ClientConfig{
		"no client certificate":      {Endpoints: endpoints, TrustedCAFile: trusted.CertFile},
		"another client certificate": {Endpoints: endpoints, CertFile: stranger.CertFile, KeyFile: stranger.KeyFile, TrustedCAFile: trusted.CertFile},
		"a server nobody vouches for": {
			Endpoints: endpoints, CertFile: trusted.CertFile, KeyFile: trusted.KeyFile, TrustedCAFile: stranger.CertFile,
		},
	} {
		if err := connect(config); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
}
