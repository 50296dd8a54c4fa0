package plane

import (
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// userAgent names krop in the audit logs of the planes.
const userAgent = "krop"

// identity is one of krop's users. All planes that it is used on share its connections.
type identity struct {
	config *rest.Config
	client *http.Client
	base   string // address of the server; that of kcp is without /clusters/...
}

// newIdentity takes the credentials of config. Rate limits of the client are off: krop's own
// in-flight limits bound what reaches here, and the server knows best what it can bear.
func newIdentity(config *rest.Config) (*identity, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = -1, 0, nil
	own.UserAgent = userAgent
	own.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(own)
	if err != nil {
		return nil, err
	}
	return &identity{config: own, client: client, base: trimSlash(base.String())}, nil
}

// at is the identity's configuration for a base URL.
func (a address) at() *rest.Config {
	config := rest.CopyConfig(a.config)
	config.Host = a.base
	return config
}

// cutCluster removes /clusters/... from a URL.
func cutCluster(location string) string {
	before, _, _ := strings.Cut(location, "/clusters/")
	return trimSlash(before)
}

func trimSlash(location string) string { return strings.TrimRight(location, "/") }
