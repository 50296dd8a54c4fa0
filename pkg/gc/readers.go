package gc

import (
	"slices"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// place is a source as one instance sees it: on the consumers' plane, its own consumer's part.
type place struct {
	source
	cluster logicalcluster.Name // of the consumer; empty on a shared plane
}

// subject is what an instance only reads: an object, or a selection.
type subject struct {
	place
	engine.ReferenceKey
}

// audience is the instances that read a subject. Instances of one kind often select the same.
type audience struct {
	subject   subject
	reference engine.Reference
	readers   map[*reader]struct{}
}

// reader is an instance that reads what isn't its own.
type reader struct {
	key       v1alpha1.InstanceKey
	uid       types.UID
	audiences []*audience
	last      time.Time // of the passes that events of what it reads have brought, or will
}

// readers finds the instances that read an object. They are in it by their keys, since the index of
// instances may not have them yet. Safe for concurrent use.
type readers struct {
	mutex     sync.RWMutex
	instances map[v1alpha1.InstanceKey]*reader
	audiences map[subject]*audience
	selecting map[place][]*audience // those that have to be looked through
}

func newReaders() *readers {
	return &readers{
		instances: map[v1alpha1.InstanceKey]*reader{},
		audiences: map[subject]*audience{},
		selecting: map[place][]*audience{},
	}
}

// add says that an instance is about to read these, too.
func (r *readers) add(key v1alpha1.InstanceKey, uid types.UID, references []engine.Reference) {
	if len(references) == 0 {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.instance(key, uid)
	for _, reference := range references {
		r.join(known, reference)
	}
}

// set says that an instance reads these and nothing else.
func (r *readers) set(key v1alpha1.InstanceKey, uid types.UID, references []engine.Reference) {
	r.add(key, uid, references)
	wanted := make(map[subject]struct{}, len(references))
	for _, reference := range references {
		wanted[subjectOf(key, reference)] = struct{}{}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keep(key, func(a *audience) bool { _, ok := wanted[a.subject]; return ok })
}

// remove forgets an instance, but not another one that has taken its name.
func (r *readers) remove(key v1alpha1.InstanceKey, uid types.UID) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known, ok := r.instances[key]; ok && known.uid == uid {
		r.keep(key, func(*audience) bool { return false })
	}
}

// removeKey forgets whatever is known under a name of which storage says that there is nothing.
func (r *readers) removeKey(key v1alpha1.InstanceKey) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keep(key, func(*audience) bool { return false })
}

// instance is the entry of an instance, a new one if the name was another's. The mutex is held.
func (r *readers) instance(key v1alpha1.InstanceKey, uid types.UID) *reader {
	known, ok := r.instances[key]
	if ok && known.uid != uid {
		r.keep(key, func(*audience) bool { return false })
	}
	if !ok || known.uid != uid {
		known = &reader{key: key, uid: uid}
		r.instances[key] = known
	}
	return known
}

// join makes an instance part of an audience. The mutex is held.
func (r *readers) join(known *reader, reference engine.Reference) {
	of := subjectOf(known.key, reference)
	joined, ok := r.audiences[of]
	if !ok {
		joined = &audience{subject: of, reference: reference, readers: map[*reader]struct{}{}}
		r.audiences[of] = joined
		if reference.Selector != nil {
			r.selecting[of.place] = append(r.selecting[of.place], joined)
		}
	}
	if _, ok := joined.readers[known]; !ok {
		joined.readers[known] = struct{}{}
		known.audiences = append(known.audiences, joined)
	}
}

// keep has an instance leave the audiences that it is not to stay in. The mutex is held.
func (r *readers) keep(key v1alpha1.InstanceKey, stays func(*audience) bool) {
	known, ok := r.instances[key]
	if !ok {
		return
	}
	known.audiences = slices.DeleteFunc(known.audiences, func(a *audience) bool {
		if stays(a) {
			return false
		}
		if delete(a.readers, known); len(a.readers) == 0 {
			r.dissolve(a)
		}
		return true
	})
	if len(known.audiences) == 0 {
		delete(r.instances, key)
	}
}

func (r *readers) dissolve(empty *audience) {
	delete(r.audiences, empty.subject)
	if empty.reference.Selector == nil {
		return
	}
	at := empty.subject.place
	left := slices.DeleteFunc(r.selecting[at], func(a *audience) bool { return a == empty })
	if r.selecting[at] = left; len(left) == 0 {
		delete(r.selecting, at)
	}
}

// of are the instances that read an object which had, or has, one of these sets of labels.
func (r *readers) of(at place, namespace, name string, had []labels.Labels) []v1alpha1.InstanceKey {
	named := engine.Reference{Target: at.target, GVR: at.gvr, Namespace: namespace, Name: name}
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	keys := r.audiences[subject{at, named.Key()}].keys(nil)
	for _, a := range r.selecting[at] {
		if slices.ContainsFunc(had, func(labels labels.Labels) bool { return a.reference.Matches(namespace, name, labels) }) {
			keys = a.keys(keys)
		}
	}
	return keys
}

// delay is how long an instance waits for the pass that an event brings, so that passes are a pause apart. All
// events until then have the same pass.
func (r *readers) delay(key v1alpha1.InstanceKey, now time.Time, pause time.Duration) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known, ok := r.instances[key]
	if !ok {
		return 0 // it has read this until just now
	}
	if !known.last.After(now) { // no pass is coming
		wait := max(0, pause-now.Sub(known.last))
		known.last = now.Add(wait)
	}
	return known.last.Sub(now)
}

// all are the instances that read anything of a source.
func (r *readers) all(s source) []v1alpha1.InstanceKey {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	var keys []v1alpha1.InstanceKey
	for _, known := range r.instances {
		if slices.ContainsFunc(known.audiences, func(a *audience) bool { return a.subject.source == s }) {
			keys = append(keys, known.key)
		}
	}
	return keys
}

// keys appends those of the audience, if there is one.
func (a *audience) keys(to []v1alpha1.InstanceKey) []v1alpha1.InstanceKey {
	if a == nil {
		return to
	}
	for known := range a.readers {
		to = append(to, known.key)
	}
	return to
}

func subjectOf(key v1alpha1.InstanceKey, reference engine.Reference) subject {
	return subject{placeOf(source{reference.Target, reference.GVR}, key.Cluster), reference.Key()}
}

// placeOf is where an object or instance of a cluster is, or sees, what a source has.
func placeOf(s source, cluster logicalcluster.Name) place {
	if s.target != v1alpha1.TargetConsumer {
		return place{source: s}
	}
	return place{s, cluster}
}
