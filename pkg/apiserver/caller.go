package apiserver

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// trust is what is known of a caller beyond the name. It is decided by how the caller was
// authenticated, and nothing that the caller sends can change it.
type trust int

const (
	// trustUser is a named user: by certificate, or by the headers of a trusted proxy.
	trustUser trust = iota
	// trustShard is a shard of kcp, which has authenticated and authorized whoever it speaks for.
	trustShard
	// trustBearer is nobody yet: kcp will authenticate the token that is passed on to it.
	trustBearer
)

// caller is an authenticated user together with the trust placed in it.
type caller struct {
	user.Info
	trust trust
}

// callerOf is nil for whoever was not authenticated.
func callerOf(info user.Info) *caller {
	found, _ := info.(*caller)
	return found
}

func callerFrom(ctx context.Context) *caller {
	info, _ := request.UserFrom(ctx)
	return callerOf(info)
}

func (c *caller) isShard() bool { return c != nil && c.trust == trustShard }

// withoutPrivilegedGroups is the user without the groups that kcp's front-proxy drops by default
// (--authentication-drop-groups): they are for kcp's parts among themselves, never for users, and
// nothing that krop decides or passes on may rest on them.
func withoutPrivilegedGroups(info user.Info) user.Info {
	return &user.DefaultInfo{
		Name:   info.GetName(),
		UID:    info.GetUID(),
		Groups: slices.DeleteFunc(slices.Clone(info.GetGroups()), privilegedGroup),
		Extra:  info.GetExtra(),
	}
}

func privilegedGroup(group string) bool {
	return group == user.SystemPrivilegedGroup ||
		group == "system:kcp:logical-cluster-admin" ||
		strings.HasPrefix(group, "system:kcp:initializer:") ||
		strings.HasPrefix(group, "system:kcp:terminator:")
}
