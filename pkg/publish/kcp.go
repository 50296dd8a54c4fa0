package publish

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpclientset "github.com/kcp-dev/sdk/client/clientset/versioned"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Config says how krop and kcp reach each other.
type Config struct {
	// REST is krop's user in kcp. A /clusters/... path in its host is cut off.
	REST *rest.Config
	// ExternalURL is where kcp's shards reach krop: the shards' --shard-virtual-workspace-url.
	ExternalURL string
	// VirtualWorkspacesURL is where krop reaches kcp's own virtual workspaces. Empty means the host of REST.
	VirtualWorkspacesURL string
	// Home is the path of krop's own workspace. Empty means DefaultHome.
	Home logicalcluster.Path
}

// DefaultHome is the workspace that krop's own export lives in, unless configured otherwise.
var DefaultHome = logicalcluster.NewPath("root:krop")

// kcp makes clients for workspaces. All of them share one HTTP client, and so its connections.
type kcp struct {
	config   *rest.Config // host without path
	client   *http.Client
	virtual  *url.URL // host of the virtual workspaces
	external string   // without trailing slash
	home     logicalcluster.Path
}

func newKCP(config Config) (*kcp, error) {
	host, err := hostOf(config.REST.Host)
	if err != nil {
		return nil, fmt.Errorf("kcp's address: %w", err)
	}
	virtual := host
	if config.VirtualWorkspacesURL != "" {
		if virtual, err = parseURL(config.VirtualWorkspacesURL); err != nil {
			return nil, fmt.Errorf("the virtual workspaces' address: %w", err)
		}
	}
	shared := rest.CopyConfig(config.REST)
	shared.Host = host.String()
	shared.QPS = -1 // kcp has its own limits; krop's work is bounded by its callers
	client, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, fmt.Errorf("client for kcp: %w", err)
	}
	home := config.Home
	if home.Empty() {
		home = DefaultHome
	}
	return &kcp{config: shared, client: client, virtual: virtual, external: strings.TrimRight(config.ExternalURL, "/"), home: home}, nil
}

// hostOf parses an address of kcp and cuts off the path of a workspace.
func hostOf(address string) (*url.URL, error) {
	parsed, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	if before, _, found := strings.Cut(parsed.Path, "/clusters/"); found {
		parsed.Path = before
	}
	parsed.Path = strings.TrimRight(parsed.Path, "/")
	return parsed, nil
}

func parseURL(address string) (*url.URL, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme == "" || parsed.Host == "" {
		return nil, fmt.Errorf("%q is not a URL with scheme and host", address)
	}
	return parsed, nil
}

// workspace is a pair of clients for one workspace.
type workspace struct {
	cluster logicalcluster.Path
	kcp     kcpclientset.Interface
	dynamic dynamic.Interface
}

func (k *kcp) workspace(path logicalcluster.Path) (*workspace, error) {
	return k.at(path, k.config.Host+path.RequestPath())
}

// at makes clients for any address that serves a workspace's paths.
func (k *kcp) at(path logicalcluster.Path, address string) (*workspace, error) {
	config := rest.CopyConfig(k.config)
	config.Host = address
	typed, err := kcpclientset.NewForConfigAndClient(config, k.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", path, err)
	}
	untyped, err := dynamic.NewForConfigAndClient(config, k.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", path, err)
	}
	return &workspace{cluster: path, kcp: typed, dynamic: untyped}, nil
}
