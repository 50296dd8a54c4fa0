package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

func TestAuthoritiesDoNotVouchForEachOthersCertificates(t *testing.T) {
	p := open(t, t.TempDir())
	pair, err := p.Client(pki.Client, pki.Identity{Name: "consumer"})
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, p.CAFile(pki.Client), pair, x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("its own authority: %v", err)
	}
	for _, other := range []pki.Authority{pki.RequestHeader, pki.HostClient, pki.Serving, pki.Etcd} {
		if verify(t, p.CAFile(other), pair, x509.ExtKeyUsageClientAuth) == nil {
			t.Errorf("authority %s vouches for a certificate of authority %s", other, pki.Client)
		}
	}
}

func TestClientCertificatesNameUserAndGroupsAndDoNotServe(t *testing.T) {
	p := open(t, t.TempDir())
	pair, err := p.Client(pki.Client, pki.Identity{Name: "kcp-admin", Groups: []string{"system:kcp:admin"}})
	if err != nil {
		t.Fatal(err)
	}
	subject := leaf(t, pair).Subject
	if subject.CommonName != "kcp-admin" || !cmp.Equal(subject.Organization, []string{"system:kcp:admin"}) {
		t.Errorf("subject is %v", subject)
	}
	if verify(t, p.CAFile(pki.Client), pair, x509.ExtKeyUsageServerAuth) == nil {
		t.Error("a client certificate passes for a server's")
	}
}

func TestASecondStartFindsTheCertificatesOfTheFirst(t *testing.T) {
	dir := t.TempDir()
	identity := pki.Identity{Name: "krop"}
	first := issue(t, open(t, dir), identity)
	second := issue(t, open(t, dir), identity)
	if !first.Equal(second) {
		t.Error("the certificate was issued again")
	}
}

func TestAnInterruptedWriteIsIssuedAgain(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir)
	pair, err := p.Server(pki.Serving, "kcp")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pair.CertFile); err != nil {
		t.Fatal(err)
	}
	if pair, err = open(t, dir).Server(pki.Serving, "kcp"); err != nil {
		t.Fatal(err)
	}
	if err := verify(t, p.CAFile(pki.Serving), pair, x509.ExtKeyUsageServerAuth); err != nil {
		t.Error(err)
	}
}

func TestChangedGroupsAreIssuedAgain(t *testing.T) {
	p := open(t, t.TempDir())
	issue(t, p, pki.Identity{Name: "shard", Groups: []string{"system:masters"}})
	if got := issue(t, p, pki.Identity{Name: "shard"}).Subject.Organization; len(got) != 0 {
		t.Errorf("groups are %v", got)
	}
}

func open(t *testing.T, dir string) *pki.PKI {
	t.Helper()
	p, err := pki.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func issue(t *testing.T, p *pki.PKI, identity pki.Identity) *x509.Certificate {
	t.Helper()
	pair, err := p.Client(pki.Client, identity)
	if err != nil {
		t.Fatal(err)
	}
	return leaf(t, pair)
}

func leaf(t *testing.T, pair pki.Pair) *x509.Certificate {
	t.Helper()
	both, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return both.Leaf
}

func verify(t *testing.T, caFile string, pair pki.Pair, usage x509.ExtKeyUsage) error {
	t.Helper()
	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = leaf(t, pair).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}
