package engine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// UsedKind is a kind that was looked up on a plane, and what the plane said of it.
type UsedKind struct {
	Target v1alpha1.Target
	GVK    schema.GroupVersionKind
	// Hash identifies the kind's resource, scope and schema; empty if the plane didn't serve it.
	Hash string
	// Document identifies all that the plane said of the group version; empty if it said nothing that can be
	// recognised. While it stays the same, so does the hash; if it doesn't, the hash may be the same all the same.
	Document string
}

// UsedKinds are kinds that a blueprint was compiled against, each once.
type UsedKinds []UsedKind

// On says whether some of the kinds were looked up among those of a group on a plane; of any group, if it is empty.
// The kinds of consumers are those of the provider's plane: there is no other to ask.
func (k UsedKinds) On(target v1alpha1.Target, group string) bool {
	return slices.ContainsFunc(k, func(kind UsedKind) bool {
		on := kind.Target
		if on == v1alpha1.TargetConsumer {
			on = v1alpha1.TargetProvider
		}
		return on == target && (group == "" || kind.GVK.Group == group)
	})
}

// Hash identifies what the kinds were: 16 lower-case hexadecimal digits, whatever their order.
func (k UsedKinds) Hash() string {
	said := make([]UsedKind, 0, len(k))
	for _, kind := range k {
		kind.Document = ""
		said = append(said, kind)
	}
	slices.SortFunc(said, func(a, b UsedKind) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.GVK.String(), b.GVK.String()))
	})
	return hashJSON(said)
}
