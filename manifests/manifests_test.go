package manifests

import (
	"io/fs"
	"testing"
)

func TestEveryManifestHoldsObjects(t *testing.T) {
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		objects, err := Objects(path)
		if err != nil {
			return err
		}
		if len(objects) == 0 {
			t.Errorf("%s holds no object", path)
		}
		for _, object := range objects {
			if object.GetKind() == "" || object.GetName() == "" {
				t.Errorf("%s: an object lacks kind or name", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBlueprintHasOneVersionWithStatus(t *testing.T) {
	definition, err := Blueprint()
	if err != nil {
		t.Fatal(err)
	}
	if len(definition.Spec.Versions) != 1 {
		t.Fatalf("got %d versions, want 1", len(definition.Spec.Versions))
	}
	version := definition.Spec.Versions[0]
	if version.Subresources == nil || version.Subresources.Status == nil {
		t.Error("the status subresource is missing")
	}
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		t.Error("the schema is missing")
	}
}
