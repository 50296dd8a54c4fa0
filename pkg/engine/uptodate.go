package engine

import (
	"encoding/base64"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// UpToDate says that applying desired would change nothing: live was written from the same desired
// state, and what it says is still there. Fields that desired lacks are others' to fill in.
//
// False means that it isn't known, and costs a write that may turn out to be empty.
func UpToDate(desired, live *unstructured.Unstructured) bool {
	if desired.GetAnnotations()[v1alpha1.AnnotationDesiredHash] != live.GetAnnotations()[v1alpha1.AnnotationDesiredHash] {
		return false
	}
	want := maps.Clone(desired.Object)
	// Status is written through its own subresource, so that a template's is ignored.
	delete(want, "status")
	// live was read as the version that was asked for.
	delete(want, "apiVersion")
	delete(want, "kind")
	if isSecret(desired) {
		want = withStringData(want)
	}
	if metadata, ok := want["metadata"].(map[string]any); ok {
		delete(want, "metadata")
		liveMetadata, _ := live.Object["metadata"].(map[string]any)
		if !metadataHolds(metadata, liveMetadata) {
			return false
		}
	}
	return mapHolds(want, live.Object, false)
}

func isSecret(object *unstructured.Unstructured) bool {
	return object.GetAPIVersion() == "v1" && object.GetKind() == "Secret"
}

// withStringData says as data what a Secret says as stringData, which can be written but not read.
func withStringData(secret map[string]any) map[string]any {
	plain, ok := secret["stringData"].(map[string]any)
	if !ok {
		return secret
	}
	out := maps.Clone(secret)
	delete(out, "stringData")
	data, _ := out["data"].(map[string]any)
	data = maps.Clone(data)
	if data == nil {
		data = make(map[string]any, len(plain))
	}
	for key, value := range plain {
		text, _ := value.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	out["data"] = data
	return out
}

// metadataSets are lists that several parties add to: each of the desired elements must be there.
var metadataSets = []string{"ownerReferences", "finalizers"}

func metadataHolds(desired, live map[string]any) bool {
	desired = maps.Clone(desired)
	for _, field := range metadataSets {
		wanted, _ := desired[field].([]any)
		present, _ := live[field].([]any)
		delete(desired, field)
		for _, element := range wanted {
			if !contains(present, element) {
				return false
			}
		}
	}
	return mapHolds(desired, live, false)
}

func contains(list []any, element any) bool {
	for _, candidate := range list {
		if holds(element, candidate, false) {
			return true
		}
	}
	return false
}

// quantityFields hold resource quantities, which API servers rewrite: "1000m" becomes "1".
var quantityFields = map[string]bool{
	"requests": true, "limits": true, "hard": true, "capacity": true, "overhead": true, "sizeLimit": true,
}

func mapHolds(desired, live map[string]any, quantities bool) bool {
	for key, value := range desired {
		if !holds(value, live[key], quantities || quantityFields[key]) {
			return false
		}
	}
	return true
}

func listHolds(desired, live []any, quantities bool) bool {
	if len(desired) != len(live) {
		return false
	}
	for i := range desired {
		if !holds(desired[i], live[i], quantities) {
			return false
		}
	}
	return true
}

// holds says whether live has everything that desired says.
func holds(desired, live any, quantities bool) bool {
	switch want := desired.(type) {
	case nil:
		return isEmpty(live)
	case map[string]any:
		have, ok := live.(map[string]any)
		return (ok || len(want) == 0 && live == nil) && mapHolds(want, have, quantities)
	case []any:
		have, ok := live.([]any)
		return (ok || len(want) == 0 && live == nil) && listHolds(want, have, quantities)
	default:
		return scalarHolds(desired, live, quantities)
	}
}

func scalarHolds(desired, live any, quantities bool) bool {
	if desired == live {
		return true
	}
	if live == nil {
		// Zero values are dropped by omitempty fields.
		return isEmpty(desired)
	}
	if want, ok := number(desired); ok {
		if have, ok := number(live); ok {
			return want == have
		}
	}
	return quantities && sameQuantity(desired, live)
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
}

func sameQuantity(a, b any) bool {
	left, ok := quantity(a)
	if !ok {
		return false
	}
	right, ok := quantity(b)
	return ok && left.Cmp(right) == 0
}

func quantity(value any) (resource.Quantity, bool) {
	switch v := value.(type) {
	case string:
		q, err := resource.ParseQuantity(v)
		return q, err == nil
	case int64:
		return *resource.NewQuantity(v, resource.DecimalSI), true
	default:
		return resource.Quantity{}, false
	}
}
