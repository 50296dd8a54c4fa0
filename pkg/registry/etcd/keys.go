package etcd

import (
	"context"
	"fmt"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Resource is where the objects of one served kind are stored. Below the backend's prefix, keys are
//
//	/<export cluster>/<group>/<resource>/<consumer cluster>/[<namespace>/]<name>
//
// with the consumer cluster and the namespace taken from the request's context.
type Resource struct {
	// ExportCluster is the logical cluster of the provider's workspace.
	ExportCluster logicalcluster.Name
	schema.GroupResource
	// Namespaced says whether keys have a namespace.
	Namespaced bool
}

// Validate says what is wrong with the resource as part of a key.
func (r Resource) Validate() error {
	if err := ValidateCluster(r.ExportCluster); err != nil {
		return fmt.Errorf("export cluster: %w", err)
	}
	for _, segment := range []string{r.Group, r.GroupResource.Resource} {
		if err := validateSegment("group or resource", segment); err != nil {
			return err
		}
	}
	return nil
}

// Prefix is what all keys of the resource start with. It ends in a slash, so that no other
// resource's keys share it.
func (r Resource) Prefix() string {
	return "/" + r.ExportCluster.String() + "/" + r.Group + "/" + r.GroupResource.Resource + "/"
}

// Root is the prefix of all keys that a list or watch may see. It tolerates a context without a
// cluster, since genericregistry.Store counts objects with an empty one, and then is the prefix of
// the resource, as it is for Wildcard. Whether a caller may read that much isn't decided here: the
// storage refuses lists and watches without a cluster, and filters those of one namespace in all clusters.
func (r Resource) Root(ctx context.Context) string {
	cluster, ok := ClusterFrom(ctx)
	if !ok || cluster == Wildcard {
		return r.Prefix()
	}
	root := r.Prefix() + cluster.String() + "/"
	if namespace := request.NamespaceValue(ctx); r.Namespaced && namespace != "" {
		root += namespace + "/"
	}
	return root
}

// Key is the key of one object. It fails with BadRequest if the context doesn't name exactly one
// cluster and, for a namespaced kind, one namespace, or if any of them can't be a segment of a key.
func (r Resource) Key(ctx context.Context, name string) (string, error) {
	cluster, ok := ClusterFrom(ctx)
	if !ok {
		return "", apierrors.NewBadRequest("logical cluster required")
	}
	return r.key(cluster, request.NamespaceValue(ctx), name)
}

// KeyOf is the key of an object that says itself which cluster it belongs to. The watch cache files
// objects under it.
func (r Resource) KeyOf(object runtime.Object) (string, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return r.key(logicalcluster.From(accessor), accessor.GetNamespace(), accessor.GetName())
}

func (r Resource) key(cluster logicalcluster.Name, namespace, name string) (string, error) {
	if err := ValidateCluster(cluster); err != nil {
		return "", err
	}
	key := r.Prefix() + cluster.String() + "/"
	if r.Namespaced {
		if err := validateSegment("namespace", namespace); err != nil {
			return "", err
		}
		key += namespace + "/"
	}
	if err := validateSegment("name", name); err != nil {
		return "", err
	}
	return key + name, nil
}

// scope checks what a list or watch reads, before Root is trusted with it.
func (r Resource) scope(ctx context.Context) (cluster logicalcluster.Name, namespace string, err error) {
	cluster, ok := ClusterFrom(ctx)
	if !ok {
		return "", "", apierrors.NewInternalError(fmt.Errorf("request for %s without a logical cluster", r.GroupResource))
	}
	if cluster != Wildcard {
		if err := ValidateCluster(cluster); err != nil {
			return "", "", err
		}
	}
	if r.Namespaced {
		namespace = request.NamespaceValue(ctx)
	}
	if namespace != "" {
		if err := validateSegment("namespace", namespace); err != nil {
			return "", "", err
		}
	}
	return cluster, namespace, nil
}

func validateSegment(what, segment string) error {
	if segment == "" {
		return apierrors.NewBadRequest(what + " required")
	}
	if problems := content.IsPathSegmentName(segment); len(problems) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid %s %q: %s", what, segment, strings.Join(problems, "; ")))
	}
	return nil
}
