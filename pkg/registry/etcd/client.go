package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/storage/etcd3"
)

const (
	// A dead server is noticed within keepaliveTime+keepaliveTimeout; the same bounds as kube-apiserver's.
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	// dialTimeout bounds each try to connect. TLS handshakes on loaded machines were seen to take over 10 s.
	dialTimeout = 20 * time.Second
	// clientLogLevel keeps the client's retries, which it reports as warnings, out of the log.
	clientLogLevel = "error"
)

// ClientConfig says which etcd servers to talk to, and how.
type ClientConfig struct {
	// Endpoints of the servers; several are members of one etcd cluster.
	Endpoints []string
	// CertFile and KeyFile are the client's certificate; both or neither.
	CertFile, KeyFile string
	// TrustedCAFile verifies the servers.
	TrustedCAFile string
}

// Validate says what is wrong with the configuration, without connecting.
func (c ClientConfig) Validate() error {
	if len(c.Endpoints) == 0 {
		return errors.New("no etcd endpoint")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("an etcd client certificate needs both a certificate and a key file")
	}
	return nil
}

// dial makes the one client that all kinds share, and proves, by reading a key, that the servers answer.
func (c ClientConfig) dial(ctx context.Context, key string) (*kubernetes.Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	config, err := c.clientv3()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.New(config)
	if err != nil {
		return nil, fmt.Errorf("making an etcd client: %w", err)
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)

	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := client.KV.Get(ctx, key); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("reading from etcd at %v: %w", c.Endpoints, err)
	}
	return client, nil
}

func (c ClientConfig) clientv3() (clientv3.Config, error) {
	logger, _, err := quietLogger(clientLogLevel)
	if err != nil {
		return clientv3.Config{}, err
	}
	config := clientv3.Config{
		Endpoints:            c.Endpoints,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		Logger:               logger,
	}
	if c.CertFile == "" && c.TrustedCAFile == "" {
		return config, nil // the client takes a nil TLS configuration for plain text
	}
	tls := transport.TLSInfo{CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.TrustedCAFile}
	if config.TLS, err = tls.ClientConfig(); err != nil {
		return clientv3.Config{}, fmt.Errorf("reading the etcd client's TLS files: %w", err)
	}
	return config, nil
}
