package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// loadOrIssue returns what is kept in the files if it is whole and wanted, and otherwise issues and keeps anew.
func loadOrIssue(pair Pair, keep func(*signer) bool, issue func() (*signer, error)) (*signer, error) {
	kept, err := load(pair)
	if err != nil {
		return nil, err
	}
	if kept != nil && keep(kept) {
		return kept, nil
	}
	issued, err := issue()
	if err != nil {
		return nil, err
	}
	return issued, issued.store(pair)
}

// load reads a pair, and returns nil if there is none.
func load(pair Pair) (*signer, error) {
	both, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", pair.CertFile, err)
	}
	key, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("load %s: the key is not an ECDSA key", pair.KeyFile)
	}
	return &signer{cert: both.Leaf, key: key}, nil
}

// store writes the key before the certificate: a certificate that is there has its key.
func (s *signer) store(pair Pair) error {
	if err := os.Remove(pair.CertFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace a certificate: %w", err)
	}
	if err := writeKey(pair.KeyFile, s.key); err != nil {
		return err
	}
	return writeFile(pair.CertFile, "CERTIFICATE", s.cert.Raw)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode a key: %w", err)
	}
	return writeFile(file, "EC PRIVATE KEY", der)
}

// writeFile writes by rename, so that a file that is there is whole.
func writeFile(file, kind string, der []byte) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
