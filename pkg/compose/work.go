package compose

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// work is what one call knows of its instance's children. Its maps change only between parallel steps.
type work struct {
	composer *Composer
	request  Request
	// rows is the inventory. A row's UID is taken out once the child is known to be gone, so that a
	// new one can be written under it.
	rows []v1alpha1.ComposedResource
	// index finds the row of a child.
	index map[v1alpha1.ObjectKey]int
	// unstored says that rows have changed in a way that must be stored before children are written.
	unstored bool

	// observed is what exists and is the instance's own, or in preflight, what a dry-run answered.
	observed engine.Observed
	// foreign is what exists and isn't the instance's.
	foreign engine.Observed
	// references is what was read of what the instance refers to, and unreadable why it could not be.
	references engine.Read
	unreadable map[engine.ReferenceKey]error
	// failed says why a child could not be read, checked or written.
	failed map[v1alpha1.ObjectKey]error
	// settled has the hash of the desired object that a child was last checked or written with.
	settled map[v1alpha1.ObjectKey]string
	// attempts counts how often a child was checked or written.
	attempts map[v1alpha1.ObjectKey]int
	// held are the nodes that have work to be done, have failed, or depend on such: what a plan says of
	// those that depend on them rests on what is about to change.
	held map[v1alpha1.NodeID]bool
	// unverified says why a child could not be checked.
	unverified map[v1alpha1.ObjectKey]error
}

func (c *Composer) begin(request Request) (*work, error) {
	composition, err := compositionOf(request.Instance)
	if err != nil {
		return nil, err
	}
	w := &work{
		composer:   c,
		request:    request,
		observed:   engine.Observed{},
		foreign:    engine.Observed{},
		references: engine.Read{},
		unreadable: map[engine.ReferenceKey]error{},
		failed:     map[v1alpha1.ObjectKey]error{},
		settled:    map[v1alpha1.ObjectKey]string{},
		attempts:   map[v1alpha1.ObjectKey]int{},
		unverified: map[v1alpha1.ObjectKey]error{},
	}
	w.take(composition.Resources)
	return w, nil
}

// take makes rows the inventory.
func (w *work) take(rows []v1alpha1.ComposedResource) {
	w.rows, w.unstored = rows, false
	w.index = make(map[v1alpha1.ObjectKey]int, len(rows))
	for i := range rows {
		if rows[i].Name != "" {
			w.index[rows[i].Key()] = i
		}
	}
}

// item is one child that is to be checked or written.
type item struct {
	node  *engine.NodePlan
	child engine.Child
}

func (i item) hash() string {
	return i.child.Object.GetAnnotations()[v1alpha1.AnnotationDesiredHash]
}

// plane is where a target's children of this instance live.
func (w *work) plane(ctx context.Context, target v1alpha1.Target) (plane.Plane, error) {
	return w.composer.planes.For(ctx, target, w.request.Program.Export, w.request.Consumer)
}

func (w *work) writeOptions() plane.WriteOptions {
	return plane.WriteOptions{FieldManager: engine.FieldManager(w.request.Instance.GetUID())}
}

// frontier is the children that can be checked or written now, and are not as wanted: those of nodes
// whose dependencies are all settled. It finds out which nodes are held.
func (w *work) frontier(plan *engine.Plan) []item {
	w.held = map[v1alpha1.NodeID]bool{}
	var items []item
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if w.waits(node) {
			w.held[node.ID] = true
			continue
		}
		for _, child := range node.Children {
			next := item{node: node, child: child}
			switch {
			case w.failed[child.Key] != nil:
				w.held[node.ID] = true
			case !w.isSettled(next):
				w.held[node.ID] = true
				items = append(items, next)
			}
		}
	}
	return items
}

// waits says whether the node depends on one that is held.
func (w *work) waits(node *engine.NodePlan) bool {
	_, waits := w.heldDependency(node)
	return waits
}

func (w *work) heldDependency(node *engine.NodePlan) (v1alpha1.NodeID, bool) {
	for _, dependency := range node.DependsOn {
		if w.held[dependency] {
			return dependency, true
		}
	}
	return "", false
}

// isSettled says whether there is nothing to be done about a child now.
func (w *work) isSettled(i item) bool {
	if hash, ok := w.settled[i.child.Key]; ok && (hash == i.hash() || w.attempts[i.child.Key] >= maxAttempts) {
		return true
	}
	live := i.child.Observed
	return live != nil && (isTerminating(live) || engine.UpToDate(i.child.Object, live))
}

// isTerminating says whether an object is being deleted. It can't be brought back; once it is gone, another takes its place.
func isTerminating(live *unstructured.Unstructured) bool { return live.GetDeletionTimestamp() != nil }

// row is the child's row of the inventory.
func (w *work) row(key v1alpha1.ObjectKey) (*v1alpha1.ComposedResource, bool) {
	i, ok := w.index[key]
	if !ok {
		return nil, false
	}
	return &w.rows[i], true
}

// version is the version of a row's resource that expressions expect: the program's, where it has the
// node, and otherwise the one that the row was written with.
func (r Request) version(row v1alpha1.ComposedResource) schema.GroupVersionResource {
	for i := range r.Program.Nodes {
		node := &r.Program.Nodes[i]
		if string(node.ID) == row.ID && node.GVR.GroupResource() == row.Key().GroupResource {
			return node.GVR
		}
	}
	return row.GVR()
}
