package publish

import (
	"maps"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/kcp-dev/sdk/apis/apis/v1alpha2/permissionclaims"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// WithClaimLabels returns the labels of an object that krop serves in a workspace, with those of kcp's by which exports see
// it whose claims on it the workspace has accepted. For ordinary kinds kcp's admission stamps them; it never runs for
// kinds that krop serves. Those that are missing are added, and those of claims that aren't accepted any more are taken
// away. A label of an export whose bindings aren't known, or not yet, stays: it says what was known when the object
// was last written. The argument is not changed, and returned as it is if nothing has to be.
func (b *Bindings) WithClaimLabels(cluster logicalcluster.Name, resource schema.GroupResource, objectLabels map[string]string) map[string]string {
	wanted := map[string]string{}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for key, value := range objectLabels {
		if strings.HasPrefix(key, apisv1alpha2.APIExportPermissionClaimLabelPrefix) && !b.knows(key) {
			wanted[key] = value
		}
	}
	b.stamp(wanted, cluster, resource, objectLabels)
	return replaceClaims(objectLabels, wanted)
}

// replaceClaims returns labels with the claims' labels replaced.
func replaceClaims(objectLabels, wanted map[string]string) map[string]string {
	present := maps.Clone(objectLabels)
	maps.DeleteFunc(present, func(key, _ string) bool {
		return !strings.HasPrefix(key, apisv1alpha2.APIExportPermissionClaimLabelPrefix)
	})
	if maps.Equal(present, wanted) {
		return objectLabels
	}
	replaced := maps.Clone(objectLabels)
	if replaced == nil {
		replaced = make(map[string]string, len(wanted))
	}
	maps.DeleteFunc(replaced, func(key, _ string) bool { _, isClaim := present[key]; return isClaim })
	maps.Copy(replaced, wanted)
	return replaced
}

// knows says whether a claim's label is of an export whose bindings have been listed. The lock is held.
func (b *Bindings) knows(label string) bool {
	f, ok := b.exports[b.byLabel[label]]
	return ok && f.isListed()
}

// stamp adds the labels of all claims on the resource that the cluster has accepted. The lock is held.
func (b *Bindings) stamp(stamps map[string]string, cluster logicalcluster.Name, resource schema.GroupResource, objectLabels map[string]string) {
	for export := range b.byCluster[cluster] {
		for _, bound := range b.exports[export].clusters[cluster] {
			bound.stamp(stamps, export, resource, objectLabels)
		}
	}
}

func (b *binding) stamp(stamps map[string]string, export v1alpha1.ExportKey, resource schema.GroupResource, objectLabels map[string]string) {
	for _, accepted := range b.accepted {
		if accepted.Group != resource.Group || accepted.Resource != resource.Resource || !accepted.selector.Matches(labels.Set(objectLabels)) {
			continue
		}
		// Fails only if a claim can't be marshalled, and then kcp can't either.
		if key, value, err := permissionclaims.ToLabelKeyAndValue(export.Cluster, export.Name, accepted.claim); err == nil {
			stamps[key] = value
		}
	}
}

// claimLabel is the key of the label by which kcp shows objects to an export. It doesn't depend on the claim.
func claimLabel(export v1alpha1.ExportKey) string {
	key, _ := permissionclaims.ToReflexiveAPIBindingLabelKeyAndValue(export.Cluster, export.Name)
	return key
}
