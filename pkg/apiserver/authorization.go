package apiserver

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// gatekeeper decides which callers may reach which surface. It needs no I/O. What depends on the export
// (is the cluster bound to it, may this user do that in the workspace) is asked behind it, by access.
type gatekeeper struct {
	// monitors may read metrics and single probes.
	monitors sets.Set[string]
}

var _ authorizer.Authorizer = gatekeeper{}

// Authorize implements authorizer.Authorizer. Whatever isn't allowed is denied, for everyone: no group
// is a way around it.
func (g gatekeeper) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	who := callerOf(attributes.GetUser())
	found := routeFrom(ctx)
	if strings.HasPrefix(attributes.GetVerb(), "impersonate") {
		return authorizer.DecisionDeny, "krop doesn't let anyone act as someone else", nil
	}
	if found.surface == surfaceServer {
		return g.server(who, attributes)
	}
	if who == nil {
		return authorizer.DecisionDeny, "authentication is required", nil
	}
	switch found.surface {
	case surfaceExport:
		return export(who, found)
	case surfaceForward:
		return authorizer.DecisionAllow, "kcp decides", nil
	default: // refused: the handler says so, now that it is known who asks
		return authorizer.DecisionAllow, "nothing is served there", nil
	}
}

func (g gatekeeper) server(who *caller, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	reads := attributes.GetVerb() == strings.ToLower(http.MethodGet) || attributes.GetVerb() == strings.ToLower(http.MethodHead)
	if !attributes.IsResourceRequest() && reads {
		if slices.Contains(publicPaths, attributes.GetPath()) {
			return authorizer.DecisionAllow, "open to all", nil
		}
		if who != nil && monitoring(attributes.GetPath()) && (who.isShard() || g.monitors.Has(who.GetName())) {
			return authorizer.DecisionAllow, "monitoring", nil
		}
	}
	return authorizer.DecisionDeny, "only probes and the version are served here", nil
}

func monitoring(path string) bool {
	return path == "/metrics" || strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/") || strings.HasPrefix(path, "/healthz/")
}

func export(who *caller, found *route) (authorizer.Decision, string, error) {
	switch {
	case who.isShard():
		return authorizer.DecisionAllow, "a shard, which has authorized its user", nil
	case who.trust != trustUser:
		return authorizer.DecisionDeny, "tokens aren't accepted here", nil
	case found.wildcard():
		return authorizer.DecisionDeny, "only shards may read across logical clusters", nil
	default:
		return authorizer.DecisionAllow, "subject to review in the workspace", nil
	}
}
