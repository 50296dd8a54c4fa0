package compose

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// reference says how a child is read.
type reference struct {
	key v1alpha1.ObjectKey
	gvr schema.GroupVersionResource
}

func (r reference) object() plane.Object {
	return plane.Object{GVR: r.gvr, Namespace: r.key.Namespace, Name: r.key.Name}
}

// reading is what a plane answered.
type reading struct {
	reference
	object *unstructured.Unstructured
	err    error
}

// get reads one child.
func (w *work) get(ctx context.Context, ref reference) reading {
	at, err := w.plane(ctx, ref.key.Target)
	if err != nil {
		return reading{reference: ref, err: err}
	}
	object, err := at.Get(ctx, ref.object())
	return reading{reference: ref, object: object, err: err}
}

// observe reads all children that are known to have been written. Of those that may not have been,
// the first write tells: it fails with AlreadyExists.
func (w *work) observe(ctx context.Context) {
	var written []reference
	for _, row := range w.rows {
		if row.Name != "" && row.UID != "" {
			written = append(written, reference{key: row.Key(), gvr: w.request.version(row)})
		}
	}
	for _, reading := range each(ctx, written, w.get) {
		w.note(reading)
	}
}

// note takes into account what was read of a child.
func (w *work) note(r reading) {
	delete(w.observed, r.key)
	delete(w.foreign, r.key)
	switch {
	case r.err == nil && w.owns(r.key, r.object):
		w.observed[r.key] = r.object
	case r.err == nil:
		w.foreign[r.key] = r.object
	case plane.IsGone(r.err):
		w.forget(r.key)
	default:
		w.failed[r.key] = r.err
	}
}

// owns says whether an object is the instance's: it is the one that was recorded and nobody else has
// put marks on it since, or it carries the instance's marks and the inventory said that it was about to
// be written. Marks alone prove nothing: anybody can copy them.
func (w *work) owns(key v1alpha1.ObjectKey, object *unstructured.Unstructured) bool {
	row, ok := w.row(key)
	return ok && isOwn(w.request, *row, object)
}

// isOwn is owns for a row that is at hand.
func isOwn(request Request, row v1alpha1.ComposedResource, object *unstructured.Unstructured) bool {
	uid := request.Instance.GetUID()
	if row.UID == "" {
		return engine.OwnedBy(object, uid, request.Consumer)
	}
	return engine.Recorded(row, object) && !engine.MarkedByOther(object, uid, request.Consumer)
}

// forget takes the UID out of a row whose child is gone.
func (w *work) forget(key v1alpha1.ObjectKey) {
	if row, ok := w.row(key); ok && row.UID != "" {
		row.UID = ""
		w.unstored = true
	}
}

// adoptable says whether the node may take the object over.
func adoptable(node *engine.NodePlan, object *unstructured.Unstructured) bool {
	return node.ConflictPolicy == v1alpha1.ConflictAdopt && !engine.Marked(object)
}
