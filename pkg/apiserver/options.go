package apiserver

import (
	"net"
	"time"

	"k8s.io/apiserver/pkg/server/options"

	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	defaultPort    = 7443
	defaultDataDir = "/var/lib/krop"
	defaultResync  = 10 * time.Minute
	// defaultComposeTimeout leaves room, within handlerLimit, for what a write does before and after composing.
	defaultComposeTimeout = 25 * time.Second
	// handlerLimit is when k8s.io/apiserver's handlers give up on a write.
	handlerLimit = 34 * time.Second
	// maxComposeTimeout keeps composing from being cut off by handlerLimit, with the status unsaved.
	maxComposeTimeout = handlerLimit - 5*time.Second
)

// Etcd says where data is kept.
type Etcd struct {
	// DataDir is for the embedded server, which runs if there are no Servers.
	DataDir string
	// Servers of an etcd cluster, with what it takes to reach them.
	Servers                   []string
	CAFile, CertFile, KeyFile string
}

// VirtualWorkspaces says where kcp serves its virtual workspaces, and how requests are forwarded there.
type VirtualWorkspaces struct {
	// URL keeps its scheme and host only.
	URL string
	// ProxyCertFile and ProxyKeyFile are the certificate that kcp lets name callers. Without them nothing is forwarded.
	ProxyCertFile, ProxyKeyFile string
}

// Options are what the flags of `krop serve` set.
type Options struct {
	SecureServing *options.SecureServingOptions
	Audit         *options.AuditOptions
	ClientCAFile  string
	RequestHeader options.RequestHeaderAuthenticationOptions

	// ShardNames are the common names of shards' client certificates.
	ShardNames []string
	// ShardRouterNames are those of proxies that may speak for shards.
	ShardRouterNames []string
	// MonitoringNames are those of whoever may read metrics and single probes.
	MonitoringNames []string

	Kubeconfig string
	// HostKubeconfig is that of the host cluster; HostInCluster says that krop runs in it. At most one is set.
	HostKubeconfig string
	HostInCluster  bool
	// ExternalURL is the address that shards reach krop at.
	ExternalURL       string
	VirtualWorkspaces VirtualWorkspaces
	Etcd              Etcd

	Resync         time.Duration
	ComposeTimeout time.Duration
	// Limits are the bounds that differ from their defaults.
	Limits budget.Limits
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	serving := options.NewSecureServingOptions()
	serving.BindAddress = net.IPv4zero
	serving.BindPort = defaultPort
	serving.Required = true
	serving.ServerCert.CertDirectory = ""
	return &Options{
		SecureServing: serving,
		Audit:         options.NewAuditOptions(),
		RequestHeader: options.RequestHeaderAuthenticationOptions{
			UsernameHeaders:     []string{"X-Remote-User"},
			GroupHeaders:        []string{"X-Remote-Group"},
			ExtraHeaderPrefixes: []string{"X-Remote-Extra-"},
		},
		Etcd:           Etcd{DataDir: defaultDataDir},
		Resync:         defaultResync,
		ComposeTimeout: defaultComposeTimeout,
		Limits:         budget.Limits{},
	}
}
