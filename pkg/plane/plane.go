package plane

import (
	"context"
	"errors"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// ErrNotReachable is wrapped by errors that say that a plane can't be reached now: no endpoint yet,
// connection refused, deadline exceeded. It is worth trying again.
var ErrNotReachable = errors.New("plane not reachable")

// Object says which object is meant: its resource, and where it is.
type Object struct {
	GVR       schema.GroupVersionResource
	Namespace string // empty for cluster-scoped objects
	Name      string
}

// Plane is one place where children live: a consumer's workspace, a provider's workspace, or the
// host. Errors of its API server are passed on as they are (k8s.io/apimachinery/pkg/api/errors tells
// them apart); errors of the way there wrap ErrNotReachable. Implementations are safe for concurrent use.
type Plane interface {
	// Get reads one object from the API server itself, not from a cache.
	Get(ctx context.Context, object Object) (*unstructured.Unstructured, error)
	// List reads the objects that the selector picks, of one namespace or, if that is empty, of all; in the
	// order of namespace and name, from the API server itself. What is more than limit objects, or larger
	// than budget.SelectedBytes, fails with *budget.Over.
	List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, selector labels.Selector, limit int) ([]*unstructured.Unstructured, error)
	// Create writes an object that was observed not to exist. It fails with AlreadyExists if it does by now.
	Create(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error)
	// Apply makes live what desired says: fields that this field manager wrote earlier and that
	// desired lacks are removed, fields of others are left. It fails with Conflict if the object is
	// no longer what live says (resourceVersion and UID).
	Apply(ctx context.Context, gvr schema.GroupVersionResource, desired, live *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error)
	// Update replaces live as a whole, under its resourceVersion. Used to take marks off.
	Update(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error)
	// Delete deletes the object if it still has this UID; Conflict if it has another one.
	Delete(ctx context.Context, object Object, uid types.UID) error
	// Versions are those in which the plane serves a resource, the preferred one first. None without an
	// error is the plane's own answer, never that of a read that failed; on a consumer's plane it says
	// nothing of what isn't claimed.
	Versions(ctx context.Context, resource schema.GroupResource) ([]string, error)
}

// WriteOptions apply to one write.
type WriteOptions struct {
	// FieldManager is the instance's own: v1alpha1.FieldManagerPrefix and its UID.
	FieldManager string
	// DryRun asks for the answer without the effect.
	DryRun bool
}

// Planes gives the plane that a target means for an instance.
type Planes interface {
	// For fails with ErrNotReachable while the plane has no endpoint, and with ErrNoHost if the target
	// is the host and none is configured.
	For(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, consumer logicalcluster.Name) (Plane, error)
}

// ErrNoHost says that krop was started without a host cluster. Its text is for everybody to read.
var ErrNoHost = errors.New("it was started without a host cluster; its administrator can name one by --host-kubeconfig or --host-in-cluster")

// Sources gives watches of all children of an export's instances, and of what they only read.
type Sources interface {
	// Watch lists and then watches, until ctx ends, the objects of gvr on the target's plane that carry
	// the blueprint's label: on the consumer plane those of all consumers of the export. It resumes
	// after cuts by listing anew, and calls handle for every object that was added, modified or deleted,
	// from one goroutine. Objects have apiVersion and metadata, nothing else; one that has gone during a
	// cut has only its identity and krop's labels. A DELETED event is a hint, not a proof (a revoked
	// claim looks the same). It returns nil when ctx ends, and ErrNoHost at once.
	Watch(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, blueprintLabel string, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error
	// WatchAll is Watch for all objects of gvr, whoever wrote them. Once all that were there at the start have
	// been told of, handle is called with Bookmark and nil; never again. An object that has gone during
	// a cut has only its identity.
	WatchAll(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error
}
