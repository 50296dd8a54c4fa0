package testbed

import (
	"context"
	"fmt"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// Names in certificates by which the servers know each other.
const (
	shardName      = "kcp-shard"
	kropUser       = "krop"
	kropProxyName  = "krop-proxy"
	frontProxyName = "kcp-front-proxy"
	routerName     = "kcp-router"
)

// describeKCP says how the shard is run.
func (b *Bed) describeKCP() error {
	args, err := b.shardArgs()
	if err != nil {
		return err
	}
	if b.options.Topology == Production {
		more, err := b.productionShardArgs()
		if err != nil {
			return err
		}
		args = append(args, more...)
	}
	b.KCP, err = b.newServer("kcp", kcpBinary, b.shardPort(), args)
	if err == nil && b.volatile() {
		b.KCP.spec.Env = []string{"UNSAFE_E2E_HACK_DISABLE_ETCD_FSYNC=true"}
	}
	return err
}

// startKCP starts the shard and, in production, what is around it.
func (b *Bed) startKCP(ctx context.Context) error {
	if err := b.startServer(ctx, b.KCP); err != nil {
		return err
	}
	if b.options.Topology == Production {
		return b.startProduction(ctx)
	}
	return nil
}

// shardPort is where the shard listens. Users reach it there only if no proxy is in front.
func (b *Bed) shardPort() int {
	if b.options.Topology == Production {
		return b.ports.shard
	}
	return b.ports.kcp
}

// virtualWorkspacesURL is what the shard takes for the address of its virtual workspaces.
func (b *Bed) virtualWorkspacesURL() string {
	if b.options.Topology == Production {
		return localhost(b.ports.router)
	}
	return localhost(b.ports.krop)
}

// shardArgs are the flags that a shard has in every topology.
func (b *Bed) shardArgs() ([]string, error) {
	serving, err := b.pki.Server(pki.Serving, "kcp")
	if err != nil {
		return nil, err
	}
	client, err := b.pki.Client(pki.Client, pki.Identity{Name: shardName, Groups: []string{mastersGroup}})
	if err != nil {
		return nil, err
	}
	return append([]string{
		"start",
		"--root-directory=" + b.layout.data("kcp"),
		"--feature-gates=CacheAPIs=true", // without it a kind in virtual storage becomes an ordinary one
		"--batteries-included=",          // no tokens, no workspace types beyond kcp's own
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", b.shardPort()),
		"--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile,
		"--client-ca-file=" + b.pki.CAFile(pki.Client),
		fmt.Sprintf("--embedded-etcd-client-port=%d", b.ports.kcpEtcd),
		fmt.Sprintf("--embedded-etcd-peer-port=%d", b.ports.kcpEtcdPeer),
		"--embedded-etcd-directory=" + b.layout.data("kcp-etcd"),
		"--shard-base-url=" + localhost(b.shardPort()),
		"--shard-external-url=" + localhost(b.ports.kcp),
		"--shard-virtual-workspace-url=" + b.virtualWorkspacesURL(),
		"--shard-virtual-workspace-ca-file=" + b.pki.CAFile(pki.Serving),
		"--shard-client-cert-file=" + client.CertFile,
		"--shard-client-key-file=" + client.KeyFile,
	}, b.requestHeaderArgs(frontProxyName, routerName, kropProxyName)...), nil
}

// requestHeaderArgs let the proxies of these names speak for others.
func (b *Bed) requestHeaderArgs(names ...string) []string {
	args := []string{
		"--requestheader-client-ca-file=" + b.pki.CAFile(pki.RequestHeader),
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
	for _, name := range names {
		args = append(args, "--requestheader-allowed-names="+name)
	}
	return args
}
