package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shownBy heads the column of a table in docs/ that names the tests which show what a line says.
const shownBy = "shown by"

// shownPages are those that have to have such a table.
var shownPages = []string{"authoring.md", "parity.md"}

// TestDocsNameTestsThatExist holds the tables of docs/ to the tests: each line names one at least, by its name or as
// TestName/subtest, and each that is named is in the sources.
func TestDocsNameTestsThatExist(t *testing.T) {
	tests := testsOf(t)
	for _, page := range shownPages {
		lines := shownLines(t, filepath.Join("../../docs", page))
		if len(lines) == 0 {
			t.Errorf("docs/%s has no table with a column %q", page, shownBy)
		}
		for _, line := range lines {
			if len(line.tests) == 0 {
				t.Errorf("docs/%s: no test shows %q", page, line.what)
			}
			for _, name := range line.tests {
				if !tests.have(name) {
					t.Errorf("docs/%s: there is no test %s (for %q)", page, name, line.what)
				}
			}
		}
	}
}

// shownLine is a line of a table.
type shownLine struct {
	what  string
	tests []string
}

var inBackticks = regexp.MustCompile("`([^`]+)`")

// shownLines are those of all tables of a page whose last column is headed by shownBy.
func shownLines(t *testing.T, page string) []shownLine {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []shownLine
	inTable := false
	for line := range strings.Lines(string(text)) {
		cells := cellsOf(line)
		switch {
		case len(cells) < 2:
			inTable = false
		case cells[len(cells)-1] == shownBy:
			inTable = true
		case inTable && !strings.HasPrefix(cells[0], "---"):
			shown := shownLine{what: cells[0]}
			for _, match := range inBackticks.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				shown.tests = append(shown.tests, match[1])
			}
			out = append(out, shown)
		}
	}
	return out
}

// cellsOf are the cells of a line of a table, none if it is no such line.
func cellsOf(line string) []string {
	text, found := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !found {
		return nil
	}
	cells := strings.Split(strings.TrimSuffix(text, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// testNames are the tests of the module: for each, the texts in its file, among which are the names of its subtests.
type testNames map[string]map[string]bool

// have says whether there is a test, and in its file the name of each subtest that is given.
func (n testNames) have(name string) bool {
	parts := strings.Split(name, "/")
	for _, subtest := range parts[1:] {
		if !n[parts[0]][subtest] {
			return false
		}
	}
	return n[parts[0]] != nil
}

func testsOf(t *testing.T) testNames {
	t.Helper()
	out := testNames{}
	for _, unit := range load(t) {
		for _, name := range unit.testFiles {
			if strings.HasSuffix(name, "_test.go") {
				out.add(t, name)
			}
		}
	}
	return out
}

func (n testNames) add(t *testing.T, name string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				texts[strings.ReplaceAll(text, " ", "_")] = true
			}
		}
		return true
	})
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") {
			n[function.Name.Name] = texts
		}
	}
}
