package messages

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root of the repository, seen from here.
const root = "../.."

// product are the folders whose texts users may be shown.
var product = []string{"cmd/krop", "manifests", "pkg"}

// sources are what the product says.
type sources struct {
	texts []said
	// constants are the values of the API's reasons, conditions, states and summaries.
	constants []string
}

// collected parses the product's sources, without tests and without what only tests use.
func collected() (sources, error) {
	var all sources
	set := token.NewFileSet()
	for _, folder := range product {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !isSource(path, entry) {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			all.texts = append(all.texts, textsOf(set, file)...)
			if strings.Contains(path, "/pkg/apis/") {
				all.constants = append(all.constants, constantsOf(file)...)
			}
			return nil
		})
		if err != nil {
			return sources{}, err
		}
	}
	if len(all.texts) == 0 || len(all.constants) == 0 {
		return sources{}, errors.New("the product says nothing, or its API has no reasons")
	}
	return all, nil
}

func isSource(path string, entry fs.DirEntry) bool {
	name := entry.Name()
	return !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, "zz_generated") && filepath.Base(filepath.Dir(path)) != "planetest"
}

func load(t *testing.T) sources {
	t.Helper()
	all, err := collected()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// constantsOf are the values of the constants in a file that a person sees in a status.
func constantsOf(file *ast.File) []string {
	var values []string
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); is && isShown(spec.Names[0].Name) {
			values = append(values, unquoted(spec.Values[0].(*ast.BasicLit)))
		}
		return true
	})
	return values
}

// isShown says whether a constant of the API is something that a person sees in a status.
func isShown(name string) bool {
	return slices.ContainsFunc([]string{"Reason", "Condition", "State", "Summary"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}
