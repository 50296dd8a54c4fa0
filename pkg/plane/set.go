package plane

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// maxPlanes is how many planes keep their client between requests. A client is cheap to make anew
// (connections are shared by all), so this only bounds memory: a few kilobytes a plane.
const maxPlanes = 4096

// Endpoints knows where the virtual workspace of an export is.
type Endpoints interface {
	// URL is the address of the export's virtual workspace, without /clusters/... It fails with
	// ErrNotReachable while kcp has not published one, which it does at the first binding.
	URL(ctx context.Context, export v1alpha1.ExportKey) (string, error)
}

// Config says how planes are reached. The identity of every outbound write is decided by it.
type Config struct {
	// Kcp is krop's own user in kcp. A /clusters/... in its host is cut off.
	Kcp *rest.Config
	// Host is the host cluster; nil if there is none. Its address is taken as it is: that of a cluster behind a
	// gateway may have /clusters/... too.
	Host *rest.Config
	// VirtualWorkspaces, if set, gives scheme and host of virtual workspaces in place of what
	// endpoints say, of which the path is kept.
	VirtualWorkspaces *url.URL
	// Endpoints locates the exports' virtual workspaces.
	Endpoints Endpoints
	// Claims says of what lists of consumers' workspaces can be believed. Without, all are.
	Claims Claims
	// Limits bound what consumers may ask of a plane, and how much is read of one.
	Limits budget.Limits
}

// Set is all planes that krop can reach. Safe for concurrent use.
type Set struct {
	kcp       *identity
	host      *identity // nil if there is none
	override  *url.URL
	endpoints Endpoints
	claims    Claims

	limits    budget.Limits
	servers   *lru.Cache // base URL -> *server
	documents *documents
}

var (
	_ Planes  = &Set{}
	_ Sources = &Set{}
)

// New makes the set. It connects to nothing yet.
func New(config Config) (*Set, error) {
	if config.Kcp == nil || config.Endpoints == nil {
		return nil, errors.New("planes need a kcp client configuration and endpoints")
	}
	kcp, err := newIdentity(config.Kcp)
	if err != nil {
		return nil, fmt.Errorf("kcp client configuration: %w", err)
	}
	kcp.base = cutCluster(kcp.base)
	set := &Set{
		kcp:       kcp,
		override:  config.VirtualWorkspaces,
		endpoints: config.Endpoints,
		claims:    config.Claims,
		limits:    config.Limits,
		servers:   lru.New(maxPlanes),
		documents: newDocuments(config.Limits),
	}
	if config.Host == nil {
		return set, nil
	}
	if set.host, err = newIdentity(config.Host); err != nil {
		return nil, fmt.Errorf("host client configuration: %w", err)
	}
	return set, nil
}

// For implements Planes.
func (s *Set) For(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, consumer logicalcluster.Name) (Plane, error) {
	at, err := s.server(ctx, target, export, consumer)
	if err != nil {
		return nil, err
	}
	if target == v1alpha1.TargetConsumer && s.claims != nil {
		return &claimed{server: at, claims: s.claims, export: export}, nil
	}
	return at, nil
}

// server is the target's API server for one consumer, with the client that it has already.
func (s *Set) server(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, consumer logicalcluster.Name) (*server, error) {
	address, err := s.address(ctx, target, export, consumer)
	if err != nil {
		return nil, err
	}
	if cached, ok := s.servers.Get(address.base); ok {
		return cached.(*server).servedTo(consumer), nil
	}
	perConsumer := s.limits.Of(budget.CallsPerConsumer)
	if target == v1alpha1.TargetConsumer {
		perConsumer = s.limits.Of(budget.CallsPerPlane) // nobody else uses it
	}
	made, err := newServer(address, s.limits, perConsumer)
	if err != nil {
		return nil, err
	}
	s.servers.Add(address.base, made)
	return made.servedTo(consumer), nil
}

// address is where a plane is, and who krop is there.
type address struct {
	*identity
	base string
}

// address decides which identity is used for a target, and where. No other place does.
func (s *Set) address(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, consumer logicalcluster.Name) (address, error) {
	switch target {
	case v1alpha1.TargetConsumer:
		workspaces, err := s.virtualWorkspace(ctx, export)
		if err != nil {
			return address{}, err
		}
		return address{s.kcp, workspaces + "/clusters/" + consumer.String()}, nil
	case v1alpha1.TargetProvider:
		return address{s.kcp, s.kcp.base + "/clusters/" + export.Cluster.String()}, nil
	case v1alpha1.TargetHost:
		if s.host == nil {
			return address{}, ErrNoHost
		}
		return address{s.host, s.host.base}, nil
	default:
		return address{}, fmt.Errorf("unknown target %q", target)
	}
}

// virtualWorkspace is the address of the export's virtual workspace, without a cluster.
func (s *Set) virtualWorkspace(ctx context.Context, export v1alpha1.ExportKey) (string, error) {
	advertised, err := s.endpoints.URL(ctx, export)
	if err != nil {
		return "", err
	}
	location, err := url.Parse(advertised)
	if err != nil {
		return "", fmt.Errorf("virtual workspace of export %s: %w", export, err)
	}
	if s.override != nil {
		location.Scheme, location.Host = s.override.Scheme, s.override.Host
	}
	return trimSlash(location.String()), nil
}
