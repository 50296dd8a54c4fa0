package publish_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// standIn stands in krop's place: it remembers what kcp asks, and answers discovery and lists.
type standIn struct {
	server *http.Server

	mu     sync.Mutex
	asked  []string // "METHOD path"
	routes *publish.Routes
}

func newStandIn(address string, serving pki.Pair) (*standIn, error) {
	certificate, err := tls.LoadX509KeyPair(serving.CertFile, serving.KeyFile)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &standIn{}
	s.server = &http.Server{Handler: s}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	go func() { _ = s.server.Serve(tls.NewListener(listener, config)) }() // returns when closed
	return s, nil
}

func (s *standIn) close() { _ = s.server.Close() }

// observe gives what is asked for objects to routes, as krop's server does.
func (s *standIn) observe(routes *publish.Routes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = routes
}

// saw says whether a request was made.
func (s *standIn) saw(request string) (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.asked, request), strings.Join(s.asked, "\n")
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	routes := s.routes
	s.mu.Unlock()

	way, api, found := strings.Cut(r.URL.Path, "/apis/")
	parts := strings.Split(way, "/") // "", services, krop, export cluster, export, clusters, cluster
	if !found || len(parts) != 7 || !strings.HasPrefix(way, publish.ServicePrefix+"/") {
		http.NotFound(w, r)
		return
	}
	export := v1alpha1.ExportKey{Cluster: logicalcluster.Name(parts[3]), Name: parts[4]}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(publish.HeaderServedBy, "stand-in")
	group := strings.Split(api, "/") // group, version, resource...
	if len(group) == 2 {
		fmt.Fprint(w, discovery(export, group[0], group[1]))
		return
	}
	if routes != nil {
		routes.Observe(export)
	}
	fmt.Fprintf(w, `{"kind": "List", "apiVersion": "%s/%s", "metadata": {"resourceVersion": "7"}, "items": []}`, group[0], group[1])
}

func discovery(export v1alpha1.ExportKey, group, version string) string {
	plural, _, _ := strings.Cut(export.Name, ".")
	namespaced := true
	if export.Name == publish.HomeExport {
		plural, namespaced = "resourcegraphdefinitions", false
	}
	return fmt.Sprintf(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "%s/%s", "resources": [
		{"name": "%s", "singularName": "", "namespaced": %t, "kind": "Any", "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]}`,
		group, version, plural, namespaced)
}
