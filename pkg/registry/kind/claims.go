package kind

import (
	"context"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// claimPrefix starts the labels by which kcp filters what an export's claims let it see. It stands here
// because only pkg/publish knows kcp's types.
const claimPrefix = "claimed.internal.apis.kcp.io/"

// claims puts those labels on what is stored. kcp's admission, which does it for other kinds, never runs for
// this one: without them, an object could not be the child of another blueprint's instance.
type claims struct {
	resource schema.GroupResource
	labels   ClaimLabels // may be nil
}

// stamp is part of every write, whoever writes. It changes nothing but metadata, so the generation stays.
func (c claims) stamp(ctx context.Context, object metav1.Object) {
	cluster, ok := etcd.ClusterFrom(ctx)
	if c.labels == nil || !ok {
		return
	}
	object.SetLabels(c.labels(cluster, c.resource, object.GetLabels()))
}

// Labels are those that an object of the cluster with these labels is stored with.
func (s *Store) Labels(cluster logicalcluster.Name, labels map[string]string) map[string]string {
	if s.claims.labels == nil {
		return labels
	}
	return s.claims.labels(cluster, s.claims.resource, labels)
}

// unowned is a filter of fields that nobody comes to own by writing: those of reset, and labels of claims. A client
// that sends back what it has read would otherwise own labels that are gone by then.
type unowned struct {
	reset fieldpath.Filter
}

// Filter implements fieldpath.Filter.
func (u unowned) Filter(fields *fieldpath.Set) *fieldpath.Set {
	kept := u.reset.Filter(fields)
	claimed := fieldpath.NewSet()
	kept.WithPrefix(metadataElement).WithPrefix(labelsElement).Members.Iterate(func(label fieldpath.PathElement) {
		if label.FieldName != nil && strings.HasPrefix(*label.FieldName, claimPrefix) {
			claimed.Insert(fieldpath.Path{metadataElement, labelsElement, label})
		}
	})
	if claimed.Empty() {
		return kept
	}
	return kept.Difference(claimed)
}

var (
	metadataElement = element("metadata")
	labelsElement   = element("labels")
)

func element(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

// unownedOf makes the filters of what a strategy resets.
func unownedOf(reset map[fieldpath.APIVersion]*fieldpath.Set) map[fieldpath.APIVersion]fieldpath.Filter {
	filters := fieldpath.NewExcludeFilterSetMap(reset)
	for version, filter := range filters {
		filters[version] = unowned{filter}
	}
	return filters
}
