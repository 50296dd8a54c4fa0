package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// hashBytes is 64 bits, 16 hexadecimal digits: hashes are compared with their own predecessors, not
// searched for among many, and are part of names that have to stay short.
const hashBytes = 8

// DesiredHash identifies what an object says, without what it says of its own hash. Two objects
// that marshal to the same JSON have the same hash.
func DesiredHash(object *unstructured.Unstructured) string {
	content := object.Object
	if annotations := object.GetAnnotations(); annotations[v1alpha1.AnnotationDesiredHash] != "" {
		unhashed := &unstructured.Unstructured{Object: maps.Clone(content)}
		unhashed.Object["metadata"] = maps.Clone(content["metadata"].(map[string]any))
		delete(annotations, v1alpha1.AnnotationDesiredHash)
		if len(annotations) == 0 {
			annotations = nil
		}
		unhashed.SetAnnotations(annotations)
		content = unhashed.Object
	}
	return hashJSON(content)
}

// SpecHash identifies a blueprint's spec: 16 lower-case hexadecimal digits over its canonical JSON.
// Fields that are at their default don't count, and neither does the order of keys.
func SpecHash(spec v1alpha1.ResourceGraphDefinitionSpec) string {
	raw, err := json.Marshal(Defaulted(spec))
	if err != nil {
		// A RawExtension that isn't JSON. It can't be compiled either; the hash only has to be stable.
		return hashJSON(err.Error())
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var canonical any
	if err := decoder.Decode(&canonical); err != nil {
		return hashJSON(string(raw))
	}
	return hashJSON(canonical)
}

// DefaultGroup is the API group of blueprints that name none, as in kro.
const DefaultGroup = "kro.run"

// Defaulted is a copy of the spec with the defaults filled in that its schema declares.
func Defaulted(spec v1alpha1.ResourceGraphDefinitionSpec) v1alpha1.ResourceGraphDefinitionSpec {
	out := *spec.DeepCopy()
	if out.Schema != nil {
		setDefault(&out.Schema.Group, DefaultGroup)
		setDefault(&out.Schema.Scope, v1alpha1.ScopeNamespaced)
	}
	for i := range out.Resources {
		setDefault(&out.Resources[i].Target, v1alpha1.TargetConsumer)
		setDefault(&out.Resources[i].ConflictPolicy, v1alpha1.ConflictFail)
		setDefault(&out.Resources[i].DeletionPolicy, v1alpha1.DeletionDelete)
	}
	return out
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// hashJSON relies on encoding/json writing maps with sorted keys, and equal numbers alike whether
// they are int64 or float64.
func hashJSON(value any) string {
	hash := sha256.New()
	// Objects are made of JSON values, so that encoding them can't fail.
	_ = json.NewEncoder(hash).Encode(value)
	return hex.EncodeToString(hash.Sum(nil)[:hashBytes])
}
