package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"time"
)

const (
	// validity is long enough for nobody to see a folder's certificates expire.
	validity = 10 * 365 * 24 * time.Hour
	// clockSkew backdates certificates, for clocks that are set back a little.
	clockSkew = time.Hour
	// serialBits is the size of a random serial number.
	serialBits = 127

	caName       = "ca"
	clientPrefix = "client-"
	serverPrefix = "server-"
)

// signer is a certificate with its key.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue returns the certificate kept under a name if its subject is still the one wanted, or a new one.
func (p *PKI) issue(authority Authority, name string, template *x509.Certificate) (Pair, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	parent, known := p.signers[authority]
	if !known {
		return Pair{}, fmt.Errorf("there is no authority %q", authority)
	}
	pair := p.pair(authority, name)
	keep := func(s *signer) bool { return sameSubject(s.cert.Subject, template.Subject) }
	_, err := loadOrIssue(pair, keep, func() (*signer, error) { return parent.sign(template) })
	if err != nil {
		return Pair{}, fmt.Errorf("certificate %s of authority %s: %w", name, authority, err)
	}
	return pair, nil
}

func sameSubject(a, b pkix.Name) bool {
	return a.CommonName == b.CommonName && slices.Equal(slices.Sorted(slices.Values(a.Organization)),
		slices.Sorted(slices.Values(b.Organization)))
}

// newSigner makes an authority that is signed by itself.
func newSigner(name string) (*signer, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	return (*signer)(nil).sign(template)
}

func clientTemplate(identity Identity) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: identity.Name, Organization: identity.Groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func serverTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

// sign issues a certificate for a new key. A nil signer signs with the new key itself.
func (s *signer) sign(template *x509.Certificate) (*signer, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-clockSkew)
	template.NotAfter = time.Now().Add(validity)
	parent, parentKey := template, key
	if s != nil {
		parent, parentKey = s.cert, s.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse what was signed: %w", err)
	}
	return &signer{cert: cert, key: key}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// fileName makes a name of a user, such as system:serviceaccount:a:b, safe as the name of a file.
func fileName(name string) string {
	return url.PathEscape(name)
}
