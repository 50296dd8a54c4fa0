package gc

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"

	"go.opendefense.cloud/krop/pkg/compose"
)

// maxSeen bounds what is remembered of versions. An echo follows its write within a second or so: this is
// room for some thousand instances written in that time, at about 150 bytes each. What is forgotten
// too early costs a pass that changes nothing.
const maxSeen = 16384

// version is an object at a resourceVersion.
type version struct {
	uid             types.UID
	resourceVersion string
}

func versionOf(object *unstructured.Unstructured) version {
	return version{uid: object.GetUID(), resourceVersion: object.GetResourceVersion()}
}

// seen remembers up to which version composing has taken an object into account, whether krop wrote
// it then or only read it. An event about that version or an earlier one says nothing new: what
// it tells of was already there when the last plan was made. An object that has changed since has a later
// version, and an event of its own. Safe for concurrent use.
type seen struct {
	versions *lru.Cache // types.UID -> resourceVersion
}

func newSeen() *seen { return &seen{versions: lru.New(maxSeen)} }

// composed remembers what a result was made from. Only results without an error may be given.
func (s *seen) composed(result *compose.Result) {
	if result.Instance != nil {
		s.add(versionOf(result.Instance))
	}
	if result.Plan == nil {
		return
	}
	for _, node := range result.Plan.Nodes {
		for _, child := range node.Children {
			if child.Observed != nil {
				s.add(versionOf(child.Observed))
			}
		}
	}
}

// add never goes back: of two versions the later one stays.
func (s *seen) add(v version) {
	if v.uid == "" || v.resourceVersion == "" || s.covers(v) {
		return
	}
	s.versions.Add(v.uid, v.resourceVersion)
}

// covers says whether the version was taken into account. Versions that can't be compared aren't covered.
func (s *seen) covers(v version) bool {
	known, ok := s.versions.Get(v.uid)
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(v.resourceVersion, known.(string))
	return err == nil && order <= 0
}
