package planetest

import (
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts an etcd in this process. Its data needn't outlive a crash.
func startEtcd(dir string) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "etcd")
	config.LogLevel = "fatal" // closing logs errors
	config.UnsafeNoFsync = true
	client, err := freeAddress()
	if err != nil {
		return nil, err
	}
	peer, err := freeAddress()
	if err != nil {
		return nil, err
	}
	clientURL, peerURL := url.URL{Scheme: "http", Host: client}, url.URL{Scheme: "http", Host: peer}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{clientURL}, []url.URL{clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peerURL}, []url.URL{peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	<-etcd.Server.ReadyNotify()
	return etcd, nil
}
