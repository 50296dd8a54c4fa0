package apiserver

import (
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// AddFlags adds the flags in groups, in the order of what one needs to decide first.
func (o *Options) AddFlags(sets *cliflag.NamedFlagSets) {
	o.addServing(sets.FlagSet("serving"))
	o.addTrust(sets.FlagSet("trust"))
	o.addClients(sets.FlagSet("kcp and host"))
	o.addStorage(sets.FlagSet("storage"))
	o.addComposition(sets.FlagSet("composition and limits"))
	o.Audit.AddFlags(sets.FlagSet("audit"))
}

func (o *Options) addServing(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.SecureServing.AddFlags(all)
	all.Lookup("secure-port").Usage = "Port to serve HTTPS on."
	all.Lookup("tls-cert-file").Usage = "Required. Certificate to serve with, followed by its intermediates if there are any. Reloaded when it changes."
	all.Lookup("tls-private-key-file").Usage = "Required. Private key of --tls-cert-file."
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "cert-dir" { // krop generates no certificates
			flags.AddFlag(flag)
		}
	})
	flags.StringVar(&o.ExternalURL, "external-url", o.ExternalURL,
		"Required. https://host:port at which shards reach krop. It is what the endpoint slices advertise, so the shard's --shard-virtual-workspace-url must be a prefix of it.")
}

func (o *Options) addTrust(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.ShardNames, "shard-names", o.ShardNames,
		"Required. Common names of the client certificates that shards of kcp present. They, and nobody else, may do what kcp forwards.")
	flags.StringSliceVar(&o.ShardRouterNames, "shard-router-names", o.ShardRouterNames,
		"Common names of proxies, verified by --requestheader-client-ca-file, that may name a shard in the request headers, even if they are in --requestheader-allowed-names too. Never list a proxy that users reach.")
	flags.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"Required. Authorities that client certificates of shards and users are verified with. Reloaded when it changes.")
	o.RequestHeader.AddFlags(flags)
	flags.Lookup("requestheader-client-ca-file").Usage =
		"Authorities that certificates of proxies are verified with. Only then are the users believed that they name in request headers."
	flags.Lookup("requestheader-allowed-names").Usage =
		"Common names of proxies that name users in request headers. Required with --requestheader-client-ca-file. Their users are never shards, whatever their names, unless the proxy is in --shard-router-names."
	flags.StringSliceVar(&o.MonitoringNames, "monitoring-names", o.MonitoringNames,
		"Names of users that may read /metrics and single probes, such as /readyz/kcp. Shards may.")
}

func (o *Options) addClients(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Required. Kubeconfig of krop's own user in kcp. A /clusters/... at the end of its server is ignored.")
	flags.StringVar(&o.HostKubeconfig, "host-kubeconfig", o.HostKubeconfig,
		"Kubeconfig of krop's own user in the host cluster, any Kubernetes, where resources with target host are. Without a host, blueprints that have such resources are refused.")
	flags.BoolVar(&o.HostInCluster, "host-in-cluster", o.HostInCluster,
		"The cluster that krop runs in is the host, and its pod's service account is krop's user there. Excludes --host-kubeconfig.")
	flags.StringVar(&o.VirtualWorkspaces.URL, "virtual-workspaces-url", o.VirtualWorkspaces.URL,
		"https://host:port at which kcp itself serves virtual workspaces. Set it if the shard's --shard-virtual-workspace-url points at krop.")
	flags.StringVar(&o.VirtualWorkspaces.ProxyCertFile, "proxy-client-cert-file", o.VirtualWorkspaces.ProxyCertFile,
		"Client certificate that kcp accepts for naming callers in request headers. With it, requests for other virtual workspaces are forwarded to --virtual-workspaces-url.")
	flags.StringVar(&o.VirtualWorkspaces.ProxyKeyFile, "proxy-client-key-file", o.VirtualWorkspaces.ProxyKeyFile,
		"Private key of --proxy-client-cert-file.")
}

func (o *Options) addStorage(flags *pflag.FlagSet) {
	flags.StringVar(&o.Etcd.DataDir, "data-dir", o.Etcd.DataDir,
		"Directory of the embedded etcd, which is used unless --etcd-servers is given.")
	flags.StringSliceVar(&o.Etcd.Servers, "etcd-servers", o.Etcd.Servers,
		"URLs of an etcd cluster. Needed for more than one replica.")
	flags.StringVar(&o.Etcd.CAFile, "etcd-cafile", o.Etcd.CAFile, "Authorities that the etcd servers are verified with.")
	flags.StringVar(&o.Etcd.CertFile, "etcd-certfile", o.Etcd.CertFile, "Client certificate for etcd.")
	flags.StringVar(&o.Etcd.KeyFile, "etcd-keyfile", o.Etcd.KeyFile, "Private key of --etcd-certfile.")
}

func (o *Options) addComposition(flags *pflag.FlagSet) {
	flags.DurationVar(&o.Resync, "resync", o.Resync,
		"How often every instance is looked at, although no event asks for it. A backstop: nothing waits for it.")
	flags.DurationVar(&o.ComposeTimeout, "compose-timeout", o.ComposeTimeout,
		"How long one write may take: waiting for its turn, checking, storing and composing. Children that aren't written by then are written in the background.")
	o.Limits.AddFlags(flags)
}
