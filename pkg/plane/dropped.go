package plane

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// dryRunApply asks what Apply would do.
//
// Where the manager owns fields by Update, the answer to a dry-run of a server-side apply still has
// those that desired has dropped, and may be refused for them: for two fields that exclude each other, of
// which the real Apply would remove one. Then it is asked again with a merge patch that
// removes them. That one replaces lists as a whole, so it is no more than a second opinion.
func (s *server) dryRunApply(ctx context.Context, at Object, desired, live *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	options := WriteOptions{FieldManager: manager, DryRun: true}
	answer, refusal := s.serverSideApply(ctx, at, under(desired, live), options)
	if !apierrors.IsInvalid(refusal) || !ownsByUpdate(live, manager) {
		return answer, refusal
	}
	body := under(desired, live)
	if dropped, err := markDropped(body.Object, live.GetManagedFields(), manager); err != nil || !dropped {
		return nil, refusal
	}
	patch, err := json.Marshal(body.Object)
	if err != nil {
		return nil, fmt.Errorf("dry-run of %s: %w", at.Name, err)
	}
	answer, err = s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.resource(at).Patch(ctx, at.Name, types.MergePatchType, patch, metav1.PatchOptions{
			FieldManager: manager, DryRun: dryRun(options),
		})
	})
	if apierrors.IsInvalid(err) {
		return nil, refusal // in the words that the real Apply would meet
	}
	return answer, err
}

// markDropped puts a null into a merge patch for every field that the manager owns alone and that the
// patch doesn't have. Elements of lists need none: the patch replaces lists.
func markDropped(patch map[string]any, entries []metav1.ManagedFieldsEntry, manager string) (dropped bool, err error) {
	own, others := fieldpath.NewSet(), fieldpath.NewSet()
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return false, fmt.Errorf("fields of %s: %w", entry.Manager, err)
		}
		if entry.Manager == manager && entry.Subresource == "" {
			own = own.Union(&fields)
		} else {
			others = others.Union(&fields)
		}
	}
	own.Difference(others).Leaves().Iterate(func(path fieldpath.Path) {
		dropped = setNull(patch, path, others) || dropped
	})
	return dropped, nil
}

// setNull puts a null where the path leaves what the patch has, and says whether it did. A field that
// others own parts of is not removed as a whole.
func setNull(patch map[string]any, path fieldpath.Path, others *fieldpath.Set) bool {
	for i, element := range path {
		if element.FieldName == nil {
			return false
		}
		name := *element.FieldName
		others = others.WithPrefix(element)
		value, has := patch[name]
		if !has && (i == len(path)-1 || others.Empty()) {
			patch[name] = nil
			return true
		}
		if !has {
			value = map[string]any{}
			patch[name] = value
		}
		inner, ok := value.(map[string]any)
		if !ok {
			return false
		}
		patch = inner
	}
	return false
}
