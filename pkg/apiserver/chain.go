package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
)

// surfaces is what the handler chain ends in.
type surfaces struct {
	export http.Handler
	// forward is nil if krop is not the address of the shard's virtual workspaces.
	forward http.Handler
}

// buildHandlerChain puts the handlers of exports and of other virtual workspaces beside the generic server's own,
// all of them behind its default chain, and the reading of the path before it.
func (s surfaces) buildHandlerChain(server http.Handler, config *genericapiserver.Config) http.Handler {
	return withRoute(genericapiserver.DefaultBuildHandlerChain(s.dispatch(server), config))
}

func (s surfaces) dispatch(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch found := routeFrom(r.Context()); {
		case found.surface == surfaceExport:
			s.export.ServeHTTP(w, r)
		case found.surface == surfaceServer:
			server.ServeHTTP(w, r)
		case found.surface == surfaceForward && s.forward != nil:
			s.forward.ServeHTTP(w, r)
		case found.surface == surfaceForward:
			writeStatus(w, r, notServed("no such virtual workspace"))
		default:
			found.body.announce(w, r)
			writeStatus(w, r, found.refusal)
		}
	})
}

// longRunning says which requests have no time limit: watches, and whatever is forwarded, on which kcp sets limits.
func longRunning() request.LongRunningRequestCheck {
	watches := filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString())
	return func(r *http.Request, info *request.RequestInfo) bool {
		return routeFrom(r.Context()).surface == surfaceForward || watches(r, info)
	}
}
