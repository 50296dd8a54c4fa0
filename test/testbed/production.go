package testbed

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// Groups by which kcp knows the servers of an installation.
const (
	clusterAdminGroup         = "system:kcp:logical-cluster-admin"
	externalClusterAdminGroup = "system:kcp:external-logical-cluster-admin"
)

// productionShardArgs are the flags that a shard has only behind proxies.
func (b *Bed) productionShardArgs() ([]string, error) {
	admin := b.layout.config("logical-cluster-admin.kubeconfig")
	identity := pki.Identity{Name: "logical-cluster-admin", Groups: []string{clusterAdminGroup}}
	if err := b.writeKubeconfig(admin, localhost(b.ports.shard), pki.Client, identity); err != nil {
		return nil, err
	}
	external := b.layout.config("external-logical-cluster-admin.kubeconfig")
	identity = pki.Identity{Name: "external-logical-cluster-admin", Groups: []string{externalClusterAdminGroup}}
	if err := b.writeKubeconfig(external, localhost(b.ports.kcp), pki.Client, identity); err != nil {
		return nil, err
	}
	return []string{
		"--run-virtual-workspaces=false",
		"--logical-cluster-admin-kubeconfig=" + admin,
		"--external-logical-cluster-admin-kubeconfig=" + external,
	}, nil
}

// startProduction starts what surrounds a shard that is ready.
func (b *Bed) startProduction(ctx context.Context) error {
	for _, describe := range []func() (*Server, error){b.virtualWorkspaces, b.router, b.frontProxy} {
		server, err := describe()
		if err != nil {
			return err
		}
		if err := b.startServer(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

// virtualWorkspaces is kcp's server of virtual workspaces.
func (b *Bed) virtualWorkspaces() (*Server, error) {
	serving, err := b.pki.Server(pki.Serving, "virtual-workspaces")
	if err != nil {
		return nil, err
	}
	shard := b.layout.config("virtual-workspaces.kubeconfig")
	identity := pki.Identity{Name: "kcp-virtual-workspaces", Groups: []string{mastersGroup}}
	if err := b.writeKubeconfig(shard, localhost(b.ports.shard), pki.Client, identity); err != nil {
		return nil, err
	}
	args := append([]string{
		"--kubeconfig=" + shard,
		"--authentication-kubeconfig=" + shard,
		"--authentication-skip-lookup",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", b.ports.virtualWorkspaces),
		"--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile,
		"--client-ca-file=" + b.pki.CAFile(pki.Client),
	}, b.requestHeaderArgs(frontProxyName, routerName, kropProxyName)...)
	return b.newServer("virtual-workspaces", virtualWorkspacesBinary, b.ports.virtualWorkspaces, args)
}

// frontProxy is what users talk to. It drops the group that is above authorization.
func (b *Bed) frontProxy() (*Server, error) {
	return b.proxy(frontProxyName, b.ports.kcp)
}

// router is the shard's address of virtual workspaces. It must pass on the group of the shard, so that it is
// not for users.
func (b *Bed) router() (*Server, error) {
	return b.proxy(routerName, b.ports.router, "--authentication-drop-groups=none")
}

// backends are the paths that both proxies map to ports.
func (b *Bed) backends() map[string]int {
	return map[string]int{
		"/clusters/":      b.ports.shard,
		"/services/":      b.ports.virtualWorkspaces,
		"/services/krop/": b.ports.krop,
	}
}

// proxy is a kcp-front-proxy at a port.
func (b *Bed) proxy(name string, port int, more ...string) (*Server, error) {
	serving, err := b.pki.Server(pki.Serving, name)
	if err != nil {
		return nil, err
	}
	mapping, err := b.writeMapping(name)
	if err != nil {
		return nil, err
	}
	shard := b.layout.config(name + ".kubeconfig")
	identity := pki.Identity{Name: name, Groups: []string{mastersGroup}}
	if err := b.writeKubeconfig(shard, localhost(b.ports.shard), pki.Client, identity); err != nil {
		return nil, err
	}
	args := append([]string{
		"--mapping-file=" + mapping,
		"--root-directory=" + b.layout.data(name),
		"--root-kubeconfig=" + shard,
		"--shards-kubeconfig=" + shard,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + serving.CertFile,
		"--tls-private-key-file=" + serving.KeyFile,
		"--client-ca-file=" + b.pki.CAFile(pki.Client),
	}, more...)
	server, err := b.newServer(name, frontProxyBinary, port, args)
	if err == nil {
		server.stateless = true // and it would wait for the end of every watch
	}
	return server, err
}

// mapping is one entry of a front-proxy's mapping file.
type mapping struct {
	Path            string `json:"path"`
	Backend         string `json:"backend"`
	BackendServerCA string `json:"backend_server_ca"`
	ProxyClientCert string `json:"proxy_client_cert"`
	ProxyClientKey  string `json:"proxy_client_key"`
}

// writeMapping writes the mapping file of a proxy, which shows all its backends one certificate.
func (b *Bed) writeMapping(name string) (string, error) {
	pair, err := b.pki.Client(pki.RequestHeader, pki.Identity{Name: name})
	if err != nil {
		return "", err
	}
	var mappings []mapping
	for path, port := range b.backends() {
		mappings = append(mappings, mapping{
			Path: path, Backend: localhost(port), BackendServerCA: b.pki.CAFile(pki.Serving),
			ProxyClientCert: pair.CertFile, ProxyClientKey: pair.KeyFile,
		})
	}
	content, err := yaml.Marshal(mappings)
	if err != nil {
		return "", fmt.Errorf("write the mappings of %s: %w", name, err)
	}
	file := b.layout.config(name + "-mapping.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return "", fmt.Errorf("write the mappings of %s: %w", name, err)
	}
	return file, nil
}
