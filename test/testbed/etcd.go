package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// etcdProgress is how often etcd tells idle watches where it is; kube-apiserver's cache waits for it.
const etcdProgress = 5 * time.Second

// startEtcd starts the host's etcd in this process. It ends with the process, however that ends.
func (b *Bed) startEtcd(ctx context.Context) error {
	config, err := b.etcdConfig()
	if err != nil {
		return err
	}
	b.say("starting etcd for the host")
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	b.mu.Lock()
	b.etcd = etcd
	b.mu.Unlock()
	select {
	case <-etcd.Server.ReadyNotify():
		return nil
	case err := <-etcd.Err():
		return fmt.Errorf("start etcd: %w", err)
	case <-time.After(readyTimeout):
		return errors.New("etcd is not ready; see " + b.layout.log("etcd"))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *Bed) etcdConfig() (*embed.Config, error) {
	pair, err := b.pki.Server(pki.Etcd, "etcd")
	if err != nil {
		return nil, err
	}
	if err := b.layout.privateLog("etcd"); err != nil {
		return nil, err
	}
	tls := transport.TLSInfo{
		CertFile: pair.CertFile, KeyFile: pair.KeyFile, TrustedCAFile: b.pki.CAFile(pki.Etcd), ClientCertAuth: true,
	}
	clients := url.URL{Scheme: "https", Host: loopback(b.ports.hostEtcd)}
	peers := url.URL{Scheme: "https", Host: loopback(b.ports.hostEtcdPeer)}
	config := embed.NewConfig()
	config.Dir = b.layout.data("host")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo, config.PeerTLSInfo = tls, tls
	config.WatchProgressNotifyInterval = etcdProgress
	config.UnsafeNoFsync = b.volatile()
	config.LogLevel = "warn"
	config.LogOutputs = []string{b.layout.log("etcd")}
	return config, nil
}

// volatile says that nobody will want the data after this run.
func (b *Bed) volatile() bool { return b.options.Dir == "" }

func (b *Bed) stopEtcd() {
	if b.etcd != nil {
		b.etcd.Close()
		b.etcd = nil
	}
}
