package plane

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// Apply implements Plane, by server-side apply with force under live's resourceVersion and UID.
//
// Server-side apply removes fields only if its manager owned them by an earlier Apply. What was
// written by POST is owned by Update, and so is every write that went through an export's virtual
// workspace, whatever it was sent as. So that ownership is turned into Apply first; otherwise a field
// that a template drops would stay forever.
func (s *server) Apply(ctx context.Context, gvr schema.GroupVersionResource, desired, live *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error) {
	at := locate(gvr, desired)
	if err := checkName(at); err != nil {
		return nil, err
	}
	if options.DryRun {
		return s.dryRunApply(ctx, at, desired, live, options.FieldManager)
	}
	if ownsByUpdate(live, options.FieldManager) {
		owned, err := s.ownByApply(ctx, at, live, options.FieldManager)
		if err != nil {
			return nil, err
		}
		live = owned
	}
	return s.serverSideApply(ctx, at, under(desired, live), options)
}

func (s *server) serverSideApply(ctx context.Context, at Object, body *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error) {
	return s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.resource(at).Apply(ctx, at.Name, body, metav1.ApplyOptions{
			FieldManager: options.FieldManager,
			Force:        true,
			DryRun:       dryRun(options),
		})
	})
}

// under is desired with the preconditions that live is still there, unchanged. Without the UID, an
// object that is gone by now would be created anew, or refused as malformed.
func under(desired, live *unstructured.Unstructured) *unstructured.Unstructured {
	body := desired.DeepCopy()
	body.SetManagedFields(nil)
	body.SetResourceVersion(live.GetResourceVersion())
	body.SetUID(live.GetUID())
	return body
}

// ownsByUpdate says whether the manager owns fields of the object, other than of a subresource,
// through anything but an apply.
func ownsByUpdate(live *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Subresource == "" &&
			entry.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// ownByApply turns what the manager owns by Update into what it owns by Apply. It changes nothing
// else, and fails with Conflict if the object has changed.
func (s *server) ownByApply(ctx context.Context, at Object, live *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(manager), manager)
	if err != nil || patch == nil {
		return live, err
	}
	return s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.resource(at).Patch(ctx, at.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	})
}
