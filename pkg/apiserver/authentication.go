package apiserver

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// publicPaths answer whoever asks: they say whether the server lives, and which version it is.
var publicPaths = []string{"/livez", "/readyz", "/healthz", "/version"}

// identities says whom the server believes, and how much.
type identities struct {
	// clientCA verifies certificates that name their owner.
	clientCA dynamiccertificates.CAContentProvider
	// proxies verifies proxies' certificates and names the headers they send. Nil if there are none.
	// Its AllowedClientNames are the proxies that speak for users.
	proxies *authenticatorfactory.RequestHeaderConfig
	// routers are the proxies that may speak for shards.
	routers []string
	// shards are the names of shards.
	shards sets.Set[string]
}

// authenticator tells who a caller is. The order matters only where one certificate serves two
// purposes: what a proxy says in headers comes before what its certificate says.
func (i identities) authenticator() authenticator.Request {
	var known []authenticator.Request
	if i.proxies != nil {
		if len(i.routers) > 0 { // an empty list would mean that any certificate may speak for shards
			known = append(known, i.shardOrUser(i.headers(headerrequest.StaticStringSlice(i.routers))))
		}
		known = append(known, onlyUser(i.headers(i.proxies.AllowedClientNames)))
	}
	known = append(known, i.shardOrUser(x509.NewDynamic(i.clientCA.VerifyOptions, x509.CommonNameUserConversion)))

	conditions := make([]apiserver.AnonymousAuthCondition, 0, len(publicPaths))
	for _, path := range publicPaths {
		conditions = append(conditions, apiserver.AnonymousAuthCondition{Path: path})
	}
	// A certificate that can't be verified is refused, not taken for none.
	return union.NewFailOnError(union.New(known...), authenticator.RequestFunc(passBearer), anonymous.NewAuthenticator(conditions))
}

// headers authenticates by what a proxy of one of these names says about its caller.
func (i identities) headers(names headerrequest.StringSliceProvider) authenticator.Request {
	says := headerrequest.NewDynamic(i.proxies.UsernameHeaders, i.proxies.UIDHeaders, i.proxies.GroupHeaders, i.proxies.ExtraHeaderPrefixes)
	once := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		for _, header := range i.proxies.UsernameHeaders.Value() {
			if len(r.Header.Values(header)) > 1 {
				return nil, false, errors.New("a proxy named more than one user")
			}
		}
		return says.AuthenticateRequest(r)
	})
	return x509.NewDynamicCAVerifier(i.proxies.CAContentProvider.VerifyOptions, once, names)
}

// shardOrUser takes a shard's name for a shard. It is for those alone whose word is the shard's own:
// the client authority, and routers.
func (i identities) shardOrUser(delegate authenticator.Request) authenticator.Request {
	return calling(delegate, func(named user.Info) trust {
		if i.shards.Has(named.GetName()) {
			return trustShard
		}
		return trustUser
	})
}

// onlyUser takes every name for a user's, a shard's too.
func onlyUser(delegate authenticator.Request) authenticator.Request {
	return calling(delegate, func(user.Info) trust { return trustUser })
}

// calling turns who was authenticated into a caller, trusted as far as trusted says.
func calling(delegate authenticator.Request, trusted func(user.Info) trust) authenticator.Request {
	grouped := group.NewAuthenticatedGroupAdder(delegate)
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := grouped.AuthenticateRequest(r)
		if err != nil || !ok {
			return nil, false, err
		}
		who := &caller{Info: withoutPrivilegedGroups(response.User), trust: trusted(response.User)}
		return &authenticator.Response{User: who, Audiences: response.Audiences}, true, nil
	})
}

// passBearer lets a request through that carries a token for kcp, and goes there.
func passBearer(r *http.Request) (*authenticator.Response, bool, error) {
	if !carriesBearer(r.Context()) {
		return nil, false, nil
	}
	nobody := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	return &authenticator.Response{User: &caller{Info: nobody, trust: trustBearer}}, true, nil
}

func carriesBearer(ctx context.Context) bool {
	_, found := bearerFrom(ctx)
	return found && routeFrom(ctx).surface == surfaceForward
}
