package testbed

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// describeKrop says how krop is run.
func (b *Bed) describeKrop() error {
	if b.options.WithoutKrop {
		return nil
	}
	args, err := b.kropArgs()
	if err != nil {
		return err
	}
	b.Krop, err = b.newServer("krop", kropBinary, b.ports.krop, append(args, b.options.KropFlags...))
	if err == nil {
		b.Krop.spec.Env = b.options.KropEnv
	}
	return err
}

// bootstrapKrop sets up krop's own workspace, as the administrator of kcp does once.
func (b *Bed) bootstrapKrop(ctx context.Context) error {
	if b.options.WithoutKrop {
		return nil
	}
	b.say("setting up root:krop")
	command := exec.CommandContext(ctx, b.options.binary(kropBinary), "bootstrap",
		"--kubeconfig="+b.Kubeconfig(Admin), "--krop-user="+kropUser, "--external-url="+b.virtualWorkspacesURL())
	output, err := command.CombinedOutput()
	if logErr := os.WriteFile(b.layout.log("krop-bootstrap"), output, 0o600); logErr != nil {
		return fmt.Errorf("keep the output of krop bootstrap: %w", logErr)
	}
	if err != nil {
		return fmt.Errorf("krop bootstrap: %w\n%s", err, output)
	}
	return nil
}

func (b *Bed) startKrop(ctx context.Context) error {
	if b.options.WithoutKrop {
		return nil
	}
	return b.startServer(ctx, b.Krop)
}

// kropArgs are the flags of krop serve.
func (b *Bed) kropArgs() ([]string, error) {
	serving, err := b.pki.Server(pki.Serving, "krop")
	if err != nil {
		return nil, err
	}
	proxy, err := b.pki.Client(pki.RequestHeader, pki.Identity{Name: kropProxyName})
	if err != nil {
		return nil, err
	}
	kubeconfigs, err := b.kropKubeconfigs()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"serve",
		"--data-dir=" + b.layout.data("krop"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", b.ports.krop),
		"--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile,
		"--client-ca-file=" + b.pki.CAFile(pki.Client),
		"--shard-names=" + shardName,
		"--external-url=" + b.virtualWorkspacesURL(),
		"--virtual-workspaces-url=" + b.exportsURL(),
		"--proxy-client-cert-file=" + proxy.CertFile,
		"--proxy-client-key-file=" + proxy.KeyFile,
	}, kubeconfigs...)
	args = append(args, b.requestHeaderArgs(frontProxyName, routerName)...)
	if b.options.Topology == Production {
		args = append(args, "--shard-router-names="+routerName)
	}
	return args, nil
}

// exportsURL is where krop reaches the virtual workspaces of exports. Their advertised address is krop itself
// in the small topology, and the router in production.
func (b *Bed) exportsURL() string {
	if b.options.Topology == Production {
		return localhost(b.ports.router)
	}
	return localhost(b.ports.kcp)
}

// kropKubeconfigs are krop's own user in kcp and on the host.
func (b *Bed) kropKubeconfigs() ([]string, error) {
	krop := pki.Identity{Name: kropUser}
	kcp := b.layout.config("krop.kubeconfig")
	if err := b.writeKubeconfig(kcp, localhost(b.ports.kcp), pki.Client, krop); err != nil {
		return nil, err
	}
	if b.options.WithoutHost {
		return []string{"--kubeconfig=" + kcp}, nil
	}
	host := b.layout.config("krop-host.kubeconfig")
	if err := b.writeKubeconfig(host, localhost(b.ports.host), pki.HostClient, krop); err != nil {
		return nil, err
	}
	return []string{"--kubeconfig=" + kcp, "--host-kubeconfig=" + host}, nil
}

// AnotherKrop describes a krop beside the first one, at a port and with flags of its own. Whoever starts it ends it.
func (b *Bed) AnotherKrop(name string, port int, flags ...string) (*Server, error) {
	args, err := b.kropArgs()
	if err != nil {
		return nil, err
	}
	args = append(args, b.options.KropFlags...)
	args = append(args, fmt.Sprintf("--secure-port=%d", port))
	return b.newServer(name, kropBinary, port, append(args, flags...))
}
