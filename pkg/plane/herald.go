package plane

import (
	"fmt"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// herald is a store that stores next to nothing: it announces what changed. After a cut it is given
// a whole list; what it remembers of each child tells which of them changed meanwhile, and whose the
// missing ones were. All calls come from the reflector's goroutine.
type herald struct {
	gvr    schema.GroupVersionResource
	handle func(watch.EventType, *unstructured.Unstructured)
	known  map[child]trace

	// strangers are told of, not children: nobody's marks are remembered, and that all have been listed is
	// announced once.
	strangers, listed bool
}

// child identifies an object within a watch.
type child struct{ cluster, namespace, name string }

// trace is what is remembered of an object: a few words, since idle instances cost nothing else here.
type trace struct {
	version string
	owner   *owner // nil of a stranger
}

// owner is whose a child is. Values that many children share are interned.
type owner struct {
	uid   types.UID
	marks [len(marks)]unique.Handle[string]
}

// marks are the labels by which an event finds its instance.
var marks = [...]string{
	v1alpha1.LabelInstanceUID, v1alpha1.LabelConsumerCluster, v1alpha1.LabelProviderCluster,
	v1alpha1.LabelBlueprint, v1alpha1.LabelNode,
}

var _ cache.ReflectorStore = &herald{}

func newHerald(gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) *herald {
	return &herald{gvr: gvr, handle: handle, known: map[child]trace{}}
}

// newStrangersHerald makes one for a watch of all objects, whoever wrote them.
func newStrangersHerald(gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) *herald {
	h := newHerald(gvr, handle)
	h.strangers = true
	return h
}

// Add implements cache.ReflectorStore.
func (h *herald) Add(object any) error { return h.announce(object) }

// Update implements cache.ReflectorStore.
func (h *herald) Update(object any) error { return h.announce(object) }

// Delete implements cache.ReflectorStore.
func (h *herald) Delete(object any) error {
	seen, err := partial(object)
	if err != nil {
		return err
	}
	delete(h.known, identify(seen))
	return h.emit(watch.Deleted, seen)
}

// Replace implements cache.ReflectorStore: it announces the differences to what is known.
func (h *herald) Replace(list []any, _ string) error {
	listed := make(map[child]struct{}, len(list))
	for _, object := range list {
		seen, err := partial(object)
		if err != nil {
			return err
		}
		listed[identify(seen)] = struct{}{}
		if err := h.announce(seen); err != nil {
			return err
		}
	}
	for id, last := range h.known {
		if _, ok := listed[id]; ok {
			continue
		}
		delete(h.known, id)
		if err := h.emit(watch.Deleted, last.object(id)); err != nil {
			return err
		}
	}
	if h.strangers && !h.listed {
		h.listed = true
		h.handle(watch.Bookmark, nil)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (h *herald) Resync() error { return nil }

// announce says that a child was added or modified, unless this version of it was announced before.
func (h *herald) announce(object any) error {
	seen, err := partial(object)
	if err != nil {
		return err
	}
	id, event := identify(seen), watch.Added
	if last, ok := h.known[id]; ok {
		if last.version == seen.ResourceVersion {
			return nil
		}
		event = watch.Modified
	}
	h.known[id] = h.traceOf(seen)
	return h.emit(event, seen)
}

func (h *herald) emit(event watch.EventType, seen *metav1.PartialObjectMetadata) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(seen)
	if err != nil {
		return fmt.Errorf("event of %s: %w", h.gvr, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(h.gvr.GroupVersion().String())
	unstructured.RemoveNestedField(content, "kind") // PartialObjectMetadata, which it is not
	h.handle(event, object)
	return nil
}

func partial(object any) (*metav1.PartialObjectMetadata, error) {
	seen, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in a watch of metadata", object)
	}
	return seen, nil
}

func identify(seen *metav1.PartialObjectMetadata) child {
	return child{seen.Annotations[v1alpha1.AnnotationCluster], seen.Namespace, seen.Name}
}

func (h *herald) traceOf(seen *metav1.PartialObjectMetadata) trace {
	t := trace{version: seen.ResourceVersion}
	if h.strangers {
		return t
	}
	t.owner = &owner{uid: seen.UID}
	for i, label := range marks {
		t.owner.marks[i] = unique.Make(seen.Labels[label])
	}
	return t
}

// object is what can still be said of an object that has gone unseen.
func (t trace) object(id child) *metav1.PartialObjectMetadata {
	gone := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: id.namespace, Name: id.name, ResourceVersion: t.version,
	}}
	if id.cluster != "" {
		gone.Annotations = map[string]string{v1alpha1.AnnotationCluster: id.cluster}
	}
	if t.owner != nil {
		t.owner.describe(gone)
	}
	return gone
}

func (o *owner) describe(gone *metav1.PartialObjectMetadata) {
	gone.UID, gone.Labels = o.uid, make(map[string]string, len(marks))
	for i, label := range marks {
		if value := o.marks[i].Value(); value != "" {
			gone.Labels[label] = value
		}
	}
}
