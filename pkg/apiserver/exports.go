package apiserver

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/request"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/pkg/registry"
)

// exports serves everything below /services/krop/<export cluster>/<export>/clusters/<cluster>.
type exports struct {
	access access
	// asked is told of every export that a shard asks for objects of; nil if nobody wants to know.
	asked func(v1alpha1.ExportKey)
	// minWatch is the shortest time after which a watch is ended; the longest is twice that.
	minWatch time.Duration
	// addresses are what discovery documents say about where the server is.
	addresses discovery.Addresses
	// version answers /version.
	version http.Handler
	limits  budget.Limits
	// watches are the places for watches of each cluster.
	watches *budget.Turns

	mu        sync.Mutex
	documents map[v1alpha1.ExportKey]*documents
}

// ServeHTTP implements http.Handler.
func (s *exports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		writeStatus(w, r, apierrors.NewInternalError(errors.New("no request info in the context")))
		return
	}
	served, err := s.access.check(r)
	if err != nil {
		writeStatus(w, r, err)
		return
	}
	if info.IsResourceRequest {
		s.prove(w, r)
		s.serveResource(w, r, served, info)
		return
	}
	s.serveDocument(w, r, served)
}

// prove shows, to kcp's clients and to krop itself, that kcp routes the export's objects here. kcp passes
// the header on. Discovery proves nothing: kcp asks for it even where it answers for objects itself.
func (s *exports) prove(w http.ResponseWriter, r *http.Request) {
	if !callerFrom(r.Context()).isShard() {
		return
	}
	w.Header().Set(publish.HeaderServedBy, "krop")
	if s.asked != nil {
		s.asked(routeFrom(r.Context()).export)
	}
}

// serveDocument answers what is said about a kind, as opposed to its objects.
func (s *exports) serveDocument(w http.ResponseWriter, r *http.Request, served *registry.Served) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		writeStatus(w, r, notAllowed("discovery, OpenAPI and the version can only be read"))
		return
	}
	about, err := s.documentsOf(served)
	if err != nil {
		writeStatus(w, r, apierrors.NewInternalError(err))
		return
	}
	gv := served.Kind.GVK().GroupVersion()
	switch path := r.URL.Path; {
	case path == "/apis":
		about.groups.ServeHTTP(w, r)
	case path == "/apis/"+gv.Group:
		about.group.ServeHTTP(w, r)
	case path == "/apis/"+gv.String():
		about.version.ServeHTTP(w, r)
	case path == openAPIPath:
		about.openAPI.HandleDiscovery(w, r)
	case path == openAPIPath+"/apis/"+gv.String():
		about.serveOpenAPI(w, r)
	case path == "/version":
		s.version.ServeHTTP(w, r)
	default:
		writeStatus(w, r, notServed(strings.TrimPrefix(path, "/")))
	}
}

// documentsOf builds the documents of a kind once; a kind that was swapped gets new ones.
func (s *exports) documentsOf(served *registry.Served) (*documents, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if about, ok := s.documents[served.Export]; ok && about.kind == served.Kind {
		return about, nil
	}
	about, err := newDocuments(served, s.addresses)
	if err != nil {
		return nil, err
	}
	s.forgetRemoved()
	s.documents[served.Export] = about
	return about, nil
}

// forgetRemoved drops the documents of exports that are no longer served.
func (s *exports) forgetRemoved() {
	for key := range s.documents {
		if _, served := s.access.catalog.Lookup(key); !served {
			delete(s.documents, key)
		}
	}
}
