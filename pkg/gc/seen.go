package gc

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
)

// maxSeen bounds what is remembered of versions. An echo follows its write within a second or so: this is
// room for some thousand instances written in that time, at about 250 bytes each. What is forgotten
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

// seen remembers up to which version composing an instance has taken an object into account, whether krop wrote
// it then or only read it. An event about that version or an earlier one says nothing new to that instance: what
// it tells of was already there when the last plan was made. An object that has changed since has a later
// version, and an event of its own. To another instance it may be news: what a nested instance has come to in a
// pass of its own, the one that it is a child of has yet to hear. Safe for concurrent use.
type seen struct {
	versions *lru.Cache // sight -> resourceVersion
}

// sight is an object as an instance sees it.
type sight struct {
	by  v1alpha1.InstanceKey
	uid types.UID
}

func newSeen() *seen { return &seen{versions: lru.New(maxSeen)} }

// composed remembers what a result for an instance was made from. Only results without an error may be given.
func (s *seen) composed(by v1alpha1.InstanceKey, result *compose.Result) {
	if result.Instance != nil {
		s.add(by, versionOf(result.Instance))
	}
	if result.Plan == nil {
		return
	}
	for _, node := range result.Plan.Nodes {
		for _, child := range node.Children {
			if child.Observed != nil {
				s.add(by, versionOf(child.Observed))
			}
		}
	}
}

// add never goes back: of two versions the later one stays.
func (s *seen) add(by v1alpha1.InstanceKey, v version) {
	if v.uid == "" || v.resourceVersion == "" || s.covers(by, v) {
		return
	}
	s.versions.Add(sight{by, v.uid}, v.resourceVersion)
}

// covers says whether the instance has taken the version into account. Versions that can't be compared aren't covered.
func (s *seen) covers(by v1alpha1.InstanceKey, v version) bool {
	known, ok := s.versions.Get(sight{by, v.uid})
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(v.resourceVersion, known.(string))
	return err == nil && order <= 0
}
