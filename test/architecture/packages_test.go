package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// unit is one package of this module.
type unit struct {
	path string
	// files without, and with, those of tests.
	files, testFiles []string
	// imports and testImports are import paths, sorted.
	imports, testImports []string
}

// units loads the module's packages once: names, files and imports, nothing is compiled.
var units = sync.OnceValues(func() (map[string]*unit, error) {
	config := &packages.Config{
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedForTest,
		Dir:   "../..",
		Tests: true,
	}
	loaded, err := packages.Load(config, module+"/...")
	if err != nil {
		return nil, err
	}
	found := map[string]*unit{}
	for _, p := range loaded {
		if !strings.HasSuffix(p.ID, ".test") {
			record(found, p)
		}
	}
	return found, nil
})

// record adds a package, or the variant of it that is built for its tests.
func record(found map[string]*unit, p *packages.Package) {
	path := strings.TrimSuffix(p.PkgPath, "_test")
	if found[path] == nil {
		found[path] = &unit{path: path}
	}
	imports := slices.Sorted(maps.Keys(p.Imports))
	if p.ForTest == "" {
		found[path].files, found[path].imports = p.GoFiles, imports
		return
	}
	found[path].testFiles = append(found[path].testFiles, p.GoFiles...)
	found[path].testImports = append(found[path].testImports, imports...)
}

func load(t *testing.T) map[string]*unit {
	t.Helper()
	found, err := units()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// chain is the shortest way of imports from a package to one that the rule forbids, nil if there is none. It goes
// on through packages of this module that the rule is about, or that it says nothing of.
func (r rule) chain(all map[string]*unit, from *unit) []string {
	type step struct {
		unit *unit
		way  []string
	}
	queue, seen := []step{{from, []string{from.path}}}, map[string]bool{from.path: true}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		imports := at.unit.imports
		if r.tests && at.unit == from {
			imports = append(slices.Clone(imports), at.unit.testImports...)
		}
		for _, path := range imports {
			way := append(slices.Clone(at.way), path)
			if r.forbids(path) {
				return way
			}
			if next := all[path]; next != nil && !seen[path] && !under(path, r.except) {
				seen[path] = true
				queue = append(queue, step{next, way})
			}
		}
	}
	return nil
}

// documented says whether one of the files has a comment on its package clause.
func documented(t *testing.T, files []string) bool {
	t.Helper()
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if hasText(file.Doc) {
			return true
		}
	}
	return false
}

func hasText(doc *ast.CommentGroup) bool {
	return doc != nil && strings.TrimSpace(doc.Text()) != ""
}
