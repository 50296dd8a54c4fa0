package gc

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// writers are the instances that wrote the object, by the field managers that it records.
func writers(object *unstructured.Unstructured) []types.UID {
	var uids []types.UID
	for _, managed := range object.GetManagedFields() {
		if uid, ok := strings.CutPrefix(managed.Manager, v1alpha1.FieldManagerPrefix); ok && !slices.Contains(uids, types.UID(uid)) {
			uids = append(uids, types.UID(uid))
		}
	}
	return uids
}

// composition is what an instance's status says it is made of. Only krop writes it, so that a part
// that can't be read means that there is none.
func composition(instance *unstructured.Unstructured) v1alpha1.Composition {
	var c v1alpha1.Composition
	content, ok, err := unstructured.NestedFieldNoCopy(instance.Object, "status", "composition")
	if !ok || err != nil {
		return c
	}
	if fields, ok := content.(map[string]any); ok {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c)
	}
	return c
}

// inventory is the rows of an instance.
func inventory(instance *unstructured.Unstructured) []v1alpha1.ComposedResource {
	return composition(instance).Resources
}

// hasDeleting says whether a child is on its way out.
func hasDeleting(c v1alpha1.Composition) bool {
	return slices.ContainsFunc(c.Resources, func(row v1alpha1.ComposedResource) bool {
		return row.State == v1alpha1.StateDeleting
	})
}

// withoutTarget is a copy of the instance whose inventory has no rows of a plane; changed is false if it had none.
func withoutTarget(instance *unstructured.Unstructured, target v1alpha1.Target) (out *unstructured.Unstructured, changed bool) {
	rows, _, _ := unstructured.NestedSlice(instance.Object, "status", "composition", "resources")
	kept := slices.DeleteFunc(slices.Clone(rows), func(row any) bool {
		fields, _ := row.(map[string]any)
		return fields["target"] == string(target)
	})
	if len(kept) == len(rows) {
		return instance, false
	}
	out = instance.DeepCopy()
	_ = unstructured.SetNestedSlice(out.Object, kept, "status", "composition", "resources")
	return out, true
}
