package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// ExportPath is the path, relative to krop's address, under which an export's kinds are served. It is
// what an endpoint slice advertises; kcp appends /clusters/<id> and the rest.
func ExportPath(export v1alpha1.ExportKey) string {
	return "/" + services + "/" + service + "/" + export.Cluster.String() + "/" + export.Name
}

const (
	// services is the first segment of all paths of virtual workspaces.
	services = "services"
	// service is krop's own name among them.
	service = "krop"
	// clusters is the segment before the logical cluster.
	clusters = "clusters"
	// wildcardEscaped is how Go's HTTP clients, and so kcp's discovery, write the wildcard.
	wildcardEscaped = "%2A"
	// neutralPath stands in for a path that was refused, so that no later layer takes a meaning from it.
	neutralPath = "/" + services + "/"
)

// surface is what a path asks for.
type surface int

const (
	// surfaceServer is the server itself: probes, version, metrics.
	surfaceServer surface = iota
	// surfaceExport is a kind, its discovery or its OpenAPI, in one logical cluster or in all.
	surfaceExport
	// surfaceForward is another virtual workspace, which is kcp's.
	surfaceForward
	// surfaceRefused is a path that nothing is served at. Who asks is established before it is said so.
	surfaceRefused
)

// route is the meaning of a request's path, found once, from its escaped form.
type route struct {
	surface surface
	export  v1alpha1.ExportKey
	cluster logicalcluster.Name
	// rest is the path below the logical cluster.
	rest string
	// refusal is the answer if the path was refused.
	refusal *apierrors.StatusError
	// body is that of the request; nil if there is none, or if requests for the surface take no places.
	body *arrival
}

// wildcard says whether all logical clusters are meant.
func (r *route) wildcard() bool { return r.cluster == etcd.Wildcard }

// refuse makes the refusal the request's answer, whatever it asked for.
func (r *route) refuse(refusal *apierrors.StatusError) {
	r.surface, r.refusal = surfaceRefused, refusal
}

type routeKey struct{}

func routeFrom(ctx context.Context) *route {
	found, _ := ctx.Value(routeKey{}).(*route)
	if found == nil {
		return &route{surface: surfaceRefused, refusal: notServed("no route")}
	}
	return found
}

// parseRoute reads the path as it came over the wire. Nothing is decoded, cleaned or joined: what isn't
// written plainly is refused, so that no two layers can read one path in two ways.
func parseRoute(escaped string) *route {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	if segments[0] != services {
		if strings.Contains(escaped, "%") {
			return refused(badPath("percent-encoding isn't accepted in paths"))
		}
		return &route{surface: surfaceServer}
	}
	if problem := segmentsProblem(segments); problem != "" {
		return refused(badPath(problem))
	}
	if len(segments) < 2 {
		return refused(notServed("no virtual workspace is named"))
	}
	if segments[1] != service {
		if strings.Contains(segments[1], "%") {
			return refused(badPath("percent-encoding isn't accepted in the name of a virtual workspace"))
		}
		return &route{surface: surfaceForward}
	}
	return parseExport(segments[2:])
}

// parseExport reads <export cluster>/<export>/clusters/<cluster>/<rest>.
func parseExport(segments []string) *route {
	const before = 4 // export cluster, export, "clusters", cluster
	if len(segments) <= before || segments[2] != clusters {
		return refused(notServed("expected " + ExportPath(v1alpha1.ExportKey{Cluster: "<export cluster>", Name: "<export>"}) + "/clusters/<cluster>/..."))
	}
	if strings.EqualFold(segments[3], wildcardEscaped) {
		segments[3] = etcd.Wildcard.String()
	}
	found := &route{
		surface: surfaceExport,
		export:  v1alpha1.ExportKey{Cluster: logicalcluster.Name(segments[0]), Name: segments[1]},
		cluster: logicalcluster.Name(segments[3]),
		rest:    "/" + strings.Join(segments[before:], "/"),
	}
	switch {
	case !validCluster(found.export.Cluster):
		return refused(badPath("the export's logical cluster isn't a valid id"))
	case len(validation.IsDNS1123Subdomain(found.export.Name)) != 0:
		return refused(badPath("the export's name isn't valid"))
	case !found.wildcard() && !validCluster(found.cluster):
		return refused(badPath("the logical cluster isn't a valid id"))
	case strings.ContainsAny(found.rest, "%*\\"):
		return refused(badPath("neither percent-encoding nor wildcards are accepted after the logical cluster"))
	case !servedBelowCluster(segments[before]):
		return refused(notServed("only apis, openapi and version are served below a logical cluster"))
	}
	return found
}

// servedBelowCluster keeps the server's own paths (probes, metrics) from being reached through an export.
func servedBelowCluster(first string) bool {
	return first == "apis" || first == "openapi" || first == "version"
}

// validCluster is stricter than the type's own IsValid, which accepts whatever starts with "system:".
func validCluster(name logicalcluster.Name) bool {
	return name.IsValid() && !strings.Contains(name.String(), ":")
}

// segmentsProblem says what no path of a virtual workspace may contain, krop's or kcp's.
func segmentsProblem(segments []string) string {
	for _, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		switch {
		case err != nil:
			return "malformed percent-encoding"
		case segment == "":
			return "empty segments aren't accepted in paths"
		case decoded == "." || decoded == "..":
			return "relative segments aren't accepted in paths"
		case strings.ContainsAny(decoded, "/\\%"):
			return "separators and percent signs aren't accepted in segments of paths"
		case strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return "control characters aren't accepted in paths"
		}
	}
	return ""
}

func refused(refusal *apierrors.StatusError) *route {
	return &route{surface: surfaceRefused, refusal: refusal}
}

// withRoute is the outermost layer: it finds out what the path means, strips the part that only krop
// understands, and takes every bearer token off the request, before anything else sees either.
func withRoute(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := parseRoute(r.URL.EscapedPath())
		ctx := context.WithValue(r.Context(), routeKey{}, found)
		if found.surface == surfaceExport {
			ctx = etcd.WithCluster(ctx, found.cluster)
		}
		if found.surface == surfaceForward {
			ctx = withBearer(ctx, r.Header.Values("Authorization"))
		}
		r = r.WithContext(ctx)
		if found.surface == surfaceExport && r.ContentLength != 0 {
			found.body = newArrival(r)
			r.Body = found.body
		}
		r.Header = r.Header.Clone()
		r.Header.Del("Authorization")
		r.URL = strippedURL(r.URL, found)
		handler.ServeHTTP(w, r)
		if found.body != nil {
			found.body.end(w)
		}
	})
}

func strippedURL(original *url.URL, found *route) *url.URL {
	stripped := *original
	switch found.surface {
	case surfaceExport:
		stripped.Path, stripped.RawPath = found.rest, ""
	case surfaceRefused:
		stripped.Path, stripped.RawPath = neutralPath, ""
	}
	return &stripped
}
