package compat_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/engine/compat"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBreakingChanges reads testdata/*.txt: two schemas, what breaks from the first to the second, and what
// breaks the other way round.
func TestBreakingChanges(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) != 4 {
				t.Fatalf("want before, after, breaking and back: %v", err)
			}
			before, after := schema(t, archive.Files[0].Data), schema(t, archive.Files[1].Data)
			for i, got := range []string{breaking(before, after), breaking(after, before)} {
				file := &archive.Files[2+i]
				if *update {
					file.Data = []byte(got)
				} else if diff := cmp.Diff(string(file.Data), got); diff != "" {
					t.Errorf("%s: -want +got (go test -update rewrites):\n%s", file.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestWhatStaysTheSameBreaksNothing(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.txt")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files[:2] {
			if got := breaking(schema(t, file.Data), schema(t, file.Data)); got != "" {
				t.Errorf("%s, %s: %s", path, file.Name, got)
			}
		}
	}
}

// TestOrderIsStable has more fields than a map is likely to yield in order by chance.
func TestOrderIsStable(t *testing.T) {
	before, after := object(), object()
	for i := range 50 {
		before.Properties[fmt.Sprintf("f%d", rand.IntN(1000)+i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	first := breaking(before, after)
	for range 5 {
		if again := breaking(before, after); again != first {
			t.Fatalf("was\n%s\nis\n%s", first, again)
		}
	}
}

func object() *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
}

func breaking(before, after *apiextensionsv1.JSONSchemaProps) string {
	var out strings.Builder
	for _, err := range compat.Breaking(before, after, field.NewPath("spec")) {
		fmt.Fprintf(&out, "%s: %s\n", err.Field, err.Detail)
	}
	return out.String()
}

func schema(t *testing.T, text []byte) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}
