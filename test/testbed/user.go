package testbed

import (
	"fmt"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// User is somebody with a client certificate and a kubeconfig. Apart from Admin and Host, each is the
// administrator of the workspace below root that has the user's name, and nothing else.
type User string

// The users that every test bed has.
const (
	// Admin may do everything in kcp. His kubeconfig is at workspace root.
	Admin User = "admin"
	// Provider owns root:provider.
	Provider User = "provider"
	// Consumer owns root:consumer.
	Consumer User = "consumer"
	// Consumer2 owns root:consumer2.
	Consumer2 User = "consumer2"
	// Host is the administrator of the host cluster, and unknown to kcp.
	Host User = "host"
)

// Workspace is the path of the user's workspace. Host has none.
func (u User) Workspace() string {
	switch u {
	case Admin:
		return rootWorkspace
	case Host:
		return ""
	default:
		return rootWorkspace + ":" + string(u)
	}
}

const (
	rootWorkspace = "root"
	// kcpAdminGroup is bound to cluster-admin in every workspace by kcp itself.
	kcpAdminGroup = "system:kcp:admin"
	// mastersGroup is above authorization, in kcp and Kubernetes. kcp's shards and proxies need it.
	mastersGroup = "system:masters"
)

// identity is what the user's certificate says, and who signs it.
func (u User) identity() (pki.Authority, pki.Identity) {
	switch u {
	case Admin:
		return pki.Client, pki.Identity{Name: "kcp-admin", Groups: []string{kcpAdminGroup}}
	case Host:
		return pki.HostClient, pki.Identity{Name: "host-admin", Groups: []string{mastersGroup}}
	default:
		return pki.Client, pki.Identity{Name: string(u)}
	}
}

// issueUser writes the kubeconfig of a user.
func (b *Bed) issueUser(user User) error {
	authority, identity := user.identity()
	server := b.serverURL(user)
	if err := b.writeKubeconfig(b.layout.kubeconfig(user), server, authority, identity); err != nil {
		return fmt.Errorf("user %s: %w", user, err)
	}
	return nil
}

// serverURL is what the user's kubeconfig points at.
func (b *Bed) serverURL(user User) string {
	if user == Host {
		return localhost(b.ports.host)
	}
	return b.workspaceURL(user.Workspace())
}

// workspaceURL is the address of a workspace, given by path or by logical cluster.
func (b *Bed) workspaceURL(workspace string) string {
	return localhost(b.ports.kcp) + "/clusters/" + workspace
}
