package testbed

import (
	"context"
	"embed"
	"fmt"
	"path/filepath"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// setup holds what the test bed's administrators apply.
//
//go:embed setup/*.yaml
var setup embed.FS

// startHost starts the host cluster: an etcd in this process and a kube-apiserver.
func (b *Bed) startHost(ctx context.Context) error {
	if b.options.WithoutHost {
		return nil
	}
	if err := b.startEtcd(ctx); err != nil {
		return err
	}
	args, err := b.hostArgs()
	if err != nil {
		return err
	}
	if b.Host, err = b.newServer("kube-apiserver", hostBinary, b.ports.host, args); err != nil {
		return err
	}
	if err := b.startServer(ctx, b.Host); err != nil {
		return err
	}
	if b.options.WithoutKrop {
		return nil
	}
	return b.prepareHost(ctx)
}

// prepareHost applies manifests/host as the host's operator does: krop's user there has these rights and no others.
func (b *Bed) prepareHost(ctx context.Context) error {
	b.say("preparing the host with %s", manifests.HostFolder)
	_, err := b.Kubectl(Host).Run(ctx, "apply", "-f", filepath.Join(b.options.Checkout, manifests.HostFolder))
	return err
}

// hostArgs are the flags of the kube-apiserver. The ServiceAccount admission plugin is off since it needs a
// controller, which the host has none of.
func (b *Bed) hostArgs() ([]string, error) {
	serving, err := b.pki.Server(pki.Serving, "host")
	if err != nil {
		return nil, err
	}
	etcd, err := b.pki.Client(pki.Etcd, pki.Identity{Name: "kube-apiserver"})
	if err != nil {
		return nil, err
	}
	tokens, err := b.pki.SigningKey("host-service-account")
	if err != nil {
		return nil, err
	}
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", b.ports.host),
		"--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile,
		"--client-ca-file=" + b.pki.CAFile(pki.HostClient),
		"--authorization-mode=RBAC",
		"--etcd-servers=" + localhost(b.ports.hostEtcd),
		"--etcd-cafile=" + b.pki.CAFile(pki.Etcd),
		"--etcd-certfile=" + etcd.CertFile,
		"--etcd-keyfile=" + etcd.KeyFile,
		"--service-account-issuer=" + localhost(b.ports.host),
		"--service-account-key-file=" + tokens,
		"--service-account-signing-key-file=" + tokens,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		"--disable-admission-plugins=ServiceAccount",
	}, nil
}
