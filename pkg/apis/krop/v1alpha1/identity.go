package v1alpha1

import (
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NodeID is the id of a resource in a blueprint.
type NodeID string

// ExportKey names an APIExport: the logical cluster of the provider's workspace, and the export's name.
type ExportKey struct {
	Cluster logicalcluster.Name
	Name    string
}

// String is "cluster/name".
func (k ExportKey) String() string { return k.Cluster.String() + "/" + k.Name }

// InstanceKey names one instance: the export that serves it, the consumer's logical cluster, and
// its namespace (empty for cluster-scoped kinds) and name.
type InstanceKey struct {
	Export    ExportKey
	Cluster   logicalcluster.Name
	Namespace string
	Name      string
}

// String is "export cluster/export|cluster|namespace/name".
func (k InstanceKey) String() string {
	return k.Export.String() + "|" + k.Cluster.String() + "|" + k.Namespace + "/" + k.Name
}

// ObjectKey identifies an object on a plane, independently of its version. It is comparable.
type ObjectKey struct {
	Target Target
	schema.GroupResource
	Namespace string
	Name      string
}

// Key is the identity of the row's child.
func (r ComposedResource) Key() ObjectKey {
	gv, _ := schema.ParseGroupVersion(r.APIVersion)
	return ObjectKey{
		Target:        r.Target,
		GroupResource: schema.GroupResource{Group: gv.Group, Resource: r.Resource},
		Namespace:     r.Namespace,
		Name:          r.Name,
	}
}

// GVR is the resource of the row's child.
func (r ComposedResource) GVR() schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(r.APIVersion)
	return gv.WithResource(r.Resource)
}
