package gc

import (
	"maps"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

// maxStrays bounds what is remembered, at some 500 bytes each. For those beyond it, the planes are listed anew
// when there is room again.
const maxStrays = 10000

// stray is a child on a shared plane whose instance isn't in the index. That proves nothing yet.
type stray struct {
	export   v1alpha1.ExportKey
	target   v1alpha1.Target
	object   plane.Object
	uid      types.UID
	instance types.UID
	consumer logicalcluster.Name
}

// strays are to be swept, or found to be nobody's orphans. Safe for concurrent use.
type strays struct {
	owns   func(logicalcluster.Name) bool
	most   int
	wakeup chan struct{}

	mutex  sync.Mutex
	found  map[stray]struct{}
	missed bool // some could not be remembered
}

func newStrays(owns func(logicalcluster.Name) bool) *strays {
	return &strays{owns: owns, most: maxStrays, found: map[stray]struct{}{}, wakeup: make(chan struct{}, 1)}
}

// add remembers a stray. One of another replica's consumer is left to that replica, and found again by a new
// list of its plane if the consumer comes to this one.
func (s *strays) add(found stray) {
	if found.target == v1alpha1.TargetConsumer || !s.owns(found.consumer) { // with a consumer, its own children go
		return
	}
	s.mutex.Lock()
	if len(s.found) >= s.most {
		maps.DeleteFunc(s.found, func(old stray, _ struct{}) bool { return !s.owns(old.consumer) })
	}
	if len(s.found) < s.most {
		s.found[found] = struct{}{}
	} else {
		s.missed = true
	}
	s.mutex.Unlock()
	s.again()
}

// caughtUp says, once, that strays which could not be remembered can be by now.
func (s *strays) caughtUp() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.missed || len(s.found) > s.most/2 {
		return false
	}
	s.missed = false
	return true
}

// again asks for a sweep.
func (s *strays) again() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

func (s *strays) remove(found ...stray) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, each := range found {
		delete(s.found, each)
	}
}

// byConsumer groups what there is by what one read of storage can decide.
func (s *strays) byConsumer() map[household][]stray {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	groups := map[household][]stray{}
	for found := range s.found {
		h := household{found.export, found.consumer}
		groups[h] = append(groups[h], found)
	}
	return groups
}

// strayOf reads a child's marks. complete is false unless they say beyond doubt that krop wrote it
// for an instance of this export.
func (s *served) strayOf(of source, child *unstructured.Unstructured) (found stray, complete bool) {
	if of.target == v1alpha1.TargetConsumer || !s.marked(of.target, child) {
		return stray{}, false
	}
	labels := child.GetLabels()
	return stray{
		export:   s.export,
		target:   of.target,
		object:   plane.Object{GVR: of.gvr, Namespace: child.GetNamespace(), Name: child.GetName()},
		uid:      child.GetUID(),
		instance: types.UID(labels[v1alpha1.LabelInstanceUID]),
		consumer: logicalcluster.Name(labels[v1alpha1.LabelConsumerCluster]),
	}, true
}

func strayOfRow(export v1alpha1.ExportKey, instance *unstructured.Unstructured, row v1alpha1.ComposedResource) stray {
	return stray{
		export:   export,
		target:   row.Target,
		object:   plane.Object{GVR: row.GVR(), Namespace: row.Namespace, Name: row.Name},
		uid:      row.UID,
		instance: instance.GetUID(),
		consumer: logicalcluster.From(instance),
	}
}

// marked says whether a child has all marks, and was written by the instance that they name: a
// copy that somebody made of a child has its labels, but not its field manager. The host is shared by
// all providers, and maybe by several krops, so there the marks of both count too: clusters of two kcps
// may have one name.
func (s *served) marked(target v1alpha1.Target, child *unstructured.Unstructured) bool {
	labels := child.GetLabels()
	for _, mark := range []string{v1alpha1.LabelInstanceUID, v1alpha1.LabelConsumerCluster, v1alpha1.LabelBlueprint, v1alpha1.LabelNode} {
		if labels[mark] == "" {
			return false
		}
	}
	if target == v1alpha1.TargetHost && (labels[v1alpha1.LabelProviderCluster] != s.export.Cluster.String() ||
		labels[v1alpha1.LabelInstallation] != s.loop.config.Installation) {
		return false
	}
	managers := writers(child)
	return len(managers) == 1 && string(managers[0]) == labels[v1alpha1.LabelInstanceUID]
}
