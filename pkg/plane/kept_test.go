package plane

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestSchemasAreKeptAsFarAsThereIsRoom(t *testing.T) {
	room := newKept(10)
	schema := func(fields int) *hashedSchema { return &hashedSchema{schema: &spec.Schema{}, fields: fields} }
	a, b, c, giant := documentKind{path: "a"}, documentKind{path: "b"}, documentKind{path: "c"}, documentKind{path: "giant"}
	room.add(a, schema(4))
	room.add(b, schema(4))
	room.get(a)
	room.add(c, schema(4)) // b was used longest ago
	for key, want := range map[documentKind]bool{a: true, b: false, c: true} {
		if _, ok := room.get(key); ok != want {
			t.Errorf("%s is kept: %t, want %t", key.path, ok, want)
		}
	}
	room.add(giant, schema(11))
	if _, ok := room.get(giant); ok || room.fields > room.most {
		t.Errorf("what has no room is kept: %d fields of %d", room.fields, room.most)
	}
}
