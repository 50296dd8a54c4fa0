package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// removal is what has become of a child that is to go.
type removal struct {
	row v1alpha1.ComposedResource
	// gone is set once the child is known not to exist, or not to be the instance's.
	gone bool
	// message says what it waits for, if it isn't gone.
	message string
	err     error
}

// remover takes children away. Unlike work, it needs no plan and no program.
type remover struct {
	composer *Composer
	request  Request
}

// remove deletes the row's child, or takes krop's marks off it if it is to be kept, and says whether it
// is gone by now. It never touches an object that isn't the instance's.
func (r remover) remove(ctx context.Context, row v1alpha1.ComposedResource) removal {
	at, err := r.composer.planes.For(ctx, row.Target, r.request.Program.Export, r.request.Consumer)
	if err != nil {
		return r.kept(ctx, row, err)
	}
	live, object, err := plane.Find(ctx, at, row.Target, r.objectOf(row))
	found := found{plane: at, object: object, live: live}
	switch {
	case plane.IsGone(err) && r.isHidden(ctx, at, row):
		return r.kept(ctx, row, errHidden)
	case plane.IsGone(err):
		return removal{row: row, gone: true}
	case err != nil:
		return r.kept(ctx, row, err)
	case !isOwn(r.request, row, live):
		return removal{row: row, gone: true} // what the row spoke of is gone, or somebody else's by now
	case row.DeletionPolicy == v1alpha1.DeletionOrphan:
		return r.orphan(ctx, row, found)
	case isTerminating(live):
		return waitsFor(row, live)
	default:
		return r.delete(ctx, row, found)
	}
}

// errHidden is said of a child that is there although reading it says otherwise.
var errHidden = apierrors.NewServiceUnavailable("it exists, but kcp doesn't show it through the permission claim yet")

// isHidden says whether a consumer's child exists although it could not be found. kcp shows objects through
// a claim by labels that it puts on them some time after the claim was accepted: until then, an object
// that was visible before the claim was revoked is not found. A dry-run of creating it knows better, since
// names are looked up without labels. What is refused for any other reason proves nothing, and the
// first answer stands.
func (r remover) isHidden(ctx context.Context, at plane.Plane, row v1alpha1.ComposedResource) bool {
	if row.Target != v1alpha1.TargetConsumer {
		return false
	}
	resource := r.request.version(row)
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(resource.GroupVersion().WithKind(row.Kind))
	probe.SetNamespace(row.Namespace)
	probe.SetName(row.Name)
	options := plane.WriteOptions{FieldManager: engine.FieldManager(r.request.Instance.GetUID()), DryRun: true}
	_, err := at.Create(ctx, resource, probe, options)
	_, denied := plane.DeniedBy(err)
	return denied || apierrors.IsAlreadyExists(err)
}

// found is a child as it was read, and where.
type found struct {
	plane  plane.Plane
	object plane.Object
	live   *unstructured.Unstructured
}

// delete deletes the very object that was read, and looks whether it goes at once.
func (r remover) delete(ctx context.Context, row v1alpha1.ComposedResource, child found) removal {
	err := child.plane.Delete(ctx, child.object, child.live.GetUID())
	if err != nil && !apierrors.IsNotFound(err) {
		return r.kept(ctx, row, err)
	}
	left, err := child.plane.Get(ctx, child.object)
	switch {
	case plane.IsGone(err):
		return removal{row: row, gone: true}
	case err != nil:
		return r.kept(ctx, row, err)
	case left.GetUID() != child.live.GetUID():
		return removal{row: row, gone: true}
	default:
		return waitsFor(row, left)
	}
}

// orphan lets the object be, without marks: nothing of krop's finds it any more.
func (r remover) orphan(ctx context.Context, row v1alpha1.ComposedResource, child found) removal {
	uid := r.request.Instance.GetUID()
	options := plane.WriteOptions{FieldManager: engine.FieldManager(uid)}
	_, err := child.plane.Update(ctx, child.object.GVR, engine.Unmarked(child.live, uid), options)
	if err != nil && !plane.IsGone(err) {
		return r.kept(ctx, row, err)
	}
	return removal{row: row, gone: true}
}

// kept is a child of which it isn't known that it is gone.
func (r remover) kept(ctx context.Context, row v1alpha1.ComposedResource, err error) removal {
	failure := newChildError(r.request, finding{node: nodeOf(row), key: row.Key(), err: err})
	failure.log(ctx, r.request.Instance)
	return removal{row: row, message: "can't be deleted: " + failure.reason, err: failure}
}

func waitsFor(row v1alpha1.ComposedResource, live *unstructured.Unstructured) removal {
	message := "being deleted"
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		message = fmt.Sprintf("being deleted: waits for finalizers %v", finalizers)
	}
	return removal{row: row, message: message}
}

// objectOf is the row's child, in the version that the program writes by now.
func (r remover) objectOf(row v1alpha1.ComposedResource) plane.Object {
	return plane.Object{GVR: r.request.version(row), Namespace: row.Namespace, Name: row.Name}
}

// waves removes children, as many as next says may go at a time, and goes on for as long as it names others: what
// depends on a child must not outlive it. It returns what is left of rows, which may have more than the children that
// are to go, and all errors, whatever plane they are of.
func (r remover) waves(ctx context.Context, rows, going []v1alpha1.ComposedResource, next func([]v1alpha1.ComposedResource) []v1alpha1.ComposedResource) (left []v1alpha1.ComposedResource, err error) {
	tried := map[v1alpha1.ObjectKey]bool{}
	isTried := func(row v1alpha1.ComposedResource) bool { return tried[row.Key()] }
	var failures []error
	for {
		wave := slices.DeleteFunc(next(going), isTried)
		if len(wave) == 0 {
			return rows, errors.Join(failures...)
		}
		removals := each(ctx, wave, r.remove)
		rows, going = without(rows, removals), without(going, removals)
		for _, removal := range removals {
			tried[removal.row.Key()] = true
			failures = append(failures, removal.err)
		}
	}
}

// without is the rows less those of children that are gone. In the others it says what they wait for.
func without(rows []v1alpha1.ComposedResource, removals []removal) []v1alpha1.ComposedResource {
	removed := make(map[v1alpha1.ObjectKey]removal, len(removals))
	for _, removal := range removals {
		removed[removal.row.Key()] = removal
	}
	left := make([]v1alpha1.ComposedResource, 0, len(rows))
	for _, row := range rows {
		removal, ok := removed[row.Key()]
		if row.Name == "" || !ok {
			left = append(left, row)
			continue
		}
		if !removal.gone {
			row.State, row.WaitingFor, row.Message = v1alpha1.StateDeleting, "", engine.Truncated(removal.message)
			left = append(left, row)
		}
	}
	return left
}
