package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// fieldManager owns what krop applies in providers' workspaces.
const fieldManager = "krop"

// HomeExport is the export of the blueprint kind, in krop's own workspace.
const HomeExport = "krop.opendefense.cloud"

// ServicePrefix starts the paths under which krop serves exports: <prefix>/<export cluster>/<export>.
const ServicePrefix = "/services/krop"

// virtualWorkspacePrefix starts the paths under which kcp serves exports' virtual workspaces.
const virtualWorkspacePrefix = "/services/apiexport"

// cachedResourceName is the CachedResource of the provider's manifest.
const cachedResourceName = "krop-endpoints"

// Kinds that publishing writes or reads. The endpoint slice's is krop's own, defined by the provider's manifest.
var (
	endpointSlices         = schema.GroupVersionResource{Group: "endpoints.krop.opendefense.cloud", Version: "v1alpha1", Resource: "blueprintendpointslices"}
	endpointSliceKind      = schema.GroupVersionKind{Group: "endpoints.krop.opendefense.cloud", Version: "v1alpha1", Kind: "BlueprintEndpointSlice"}
	apiExports             = schema.GroupResource{Group: "apis.kcp.io", Resource: "apiexports"}
	apiResourceSchemas     = schema.GroupResource{Group: "apis.kcp.io", Resource: "apiresourceschemas"}
	apiBindings            = schema.GroupResource{Group: "apis.kcp.io", Resource: "apibindings"}
	apiExportEndpointLists = schema.GroupResource{Group: "apis.kcp.io", Resource: "apiexportendpointslices"}
	cachedResources        = schema.GroupResource{Group: "cache.kcp.io", Resource: "cachedresources"}
)

// annotationSchemaHash, on an APIResourceSchema, is the hash of the schema as krop generated it.
const annotationSchemaHash = v1alpha1.Prefix + "schema-hash"

// ServiceURL is where kcp's shards reach what krop serves for an export.
func ServiceURL(externalURL string, export v1alpha1.ExportKey) string {
	return externalURL + path.Join(ServicePrefix, export.Cluster.String(), export.Name)
}

// virtualWorkspacePath is where kcp serves an export's virtual workspace. kcp advertises the same path in
// the export's endpoint slice, but only while somebody has bound it.
func virtualWorkspacePath(export v1alpha1.ExportKey) string {
	return path.Join(virtualWorkspacePrefix, export.Cluster.String(), export.Name)
}

// digest is the first half of a SHA-256, in hexadecimal digits.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Bound are the bindings by which a workspace has kinds of others.
func Bound() schema.GroupVersionResource { return apiBindings.WithVersion("v1alpha2") }

// Watched are the kinds of published objects that somebody might take away: an export and its endpoint slice,
// which have the export's name and carry the blueprint's label.
func Watched() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{apiExports.WithVersion("v1alpha2"), endpointSlices}
}
