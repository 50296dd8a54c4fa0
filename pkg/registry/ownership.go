package registry

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// fits says whether there is room in etcd for the object. Names of fields are stored once more for their owner.
func fits(object *unstructured.Unstructured) bool {
	return budget.Limits{}.Check(budget.StoredBytes, engine.JSONSize(object.Object)) == nil
}

// statusManager is the field manager under which krop writes the status of what it serves.
const statusManager = "krop"

// OwnStatus records in after's managedFields that krop wrote what differs in status between before and after.
func OwnStatus(k *kind.Kind, before, after *unstructured.Unstructured) {
	owned, err := k.StatusScope().FieldManager.Update(before, after, statusManager)
	if err != nil {
		// managedFields stay as they were: they are no reason to lose a status
		klog.Background().V(2).Info("status is stored without its owner", "object", klog.KObj(after), "uid", after.GetUID(), "err", err)
		return
	}
	if object := AsObject(owned); object != nil && fits(object) {
		after.Object = object.Object
	}
}
