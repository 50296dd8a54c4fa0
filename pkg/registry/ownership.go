package registry

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// statusManager is the field manager under which krop writes the status of what it serves.
const statusManager = "krop"

// OwnStatus records in after's managedFields that krop wrote what differs in status between before and after.
func OwnStatus(k *kind.Kind, before, after *unstructured.Unstructured) {
	owned, err := k.StatusScope().FieldManager.Update(before, after, statusManager)
	if err != nil {
		return // managedFields stay as they were: they are no reason to lose a status
	}
	if object := asObject(owned); object != nil {
		after.Object = object.Object
	}
}
