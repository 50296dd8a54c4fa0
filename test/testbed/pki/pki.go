package pki

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Authority names a certificate authority.
type Authority string

// The authorities of a test bed.
const (
	// Serving signs the certificates that servers show.
	Serving Authority = "serving"
	// Client signs the users of kcp: the common name is the user, organizations are groups.
	Client Authority = "client"
	// RequestHeader signs proxies, which name their caller in X-Remote-* headers.
	RequestHeader Authority = "requestheader"
	// HostClient signs the users of the host cluster.
	HostClient Authority = "host-client"
	// Etcd signs the host's etcd and its one client.
	Etcd Authority = "etcd"
)

// authorities are all of them, each created when a folder is opened for the first time.
var authorities = []Authority{Serving, Client, RequestHeader, HostClient, Etcd}

// Identity is who a client certificate says its holder is.
type Identity struct {
	// Name of the user.
	Name string
	// Groups of the user.
	Groups []string
}

// Pair is a certificate and its key, as PEM files.
type Pair struct {
	CertFile, KeyFile string
}

// PKI issues certificates into a folder. It may be used concurrently.
type PKI struct {
	dir     string
	mu      sync.Mutex
	signers map[Authority]*signer
}

// Open loads the authorities of a folder, and creates those that it lacks.
func Open(dir string) (*PKI, error) {
	p := &PKI{dir: dir, signers: map[Authority]*signer{}}
	for _, authority := range authorities {
		if err := os.MkdirAll(filepath.Join(dir, string(authority)), 0o700); err != nil {
			return nil, fmt.Errorf("create a folder for certificates: %w", err)
		}
		pair := p.pair(authority, caName)
		issue := func() (*signer, error) { return newSigner(string(authority) + "-ca") }
		signer, err := loadOrIssue(pair, func(*signer) bool { return true }, issue)
		if err != nil {
			return nil, fmt.Errorf("authority %s: %w", authority, err)
		}
		p.signers[authority] = signer
	}
	return p, nil
}

// CAFile is the PEM file with the certificate of an authority.
func (p *PKI) CAFile(authority Authority) string {
	return p.pair(authority, caName).CertFile
}

// Client returns a client certificate for an identity. Asked again for the same one it returns the same pair.
func (p *PKI) Client(authority Authority, identity Identity) (Pair, error) {
	return p.issue(authority, clientPrefix+identity.Name, clientTemplate(identity))
}

// Server returns a certificate for a server at localhost. It also serves as a client certificate among
// servers of one authority, as the members of an etcd cluster need.
func (p *PKI) Server(authority Authority, name string) (Pair, error) {
	return p.issue(authority, serverPrefix+name, serverTemplate(name))
}

// SigningKey returns the file of a key that signs tokens.
func (p *PKI) SigningKey(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	file := filepath.Join(p.dir, name+".key")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	key, err := newKey()
	if err != nil {
		return "", err
	}
	return file, writeKey(file, key)
}

// pair says where a certificate of an authority is kept.
func (p *PKI) pair(authority Authority, name string) Pair {
	base := filepath.Join(p.dir, string(authority), fileName(name))
	return Pair{CertFile: base + ".crt", KeyFile: base + ".key"}
}
