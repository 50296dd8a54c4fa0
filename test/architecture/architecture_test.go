package architecture

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxMainLines leaves room for a call and an exit code: what a command does is in files of its own.
const maxMainLines = 40

func TestImportsKeepToTheRules(t *testing.T) {
	all := load(t)
	for _, rule := range rules {
		for _, unit := range all {
			if !rule.about(unit.path) {
				continue
			}
			if way := rule.chain(all, unit); way != nil {
				t.Errorf("%s\n\tis forbidden: %s", strings.Join(way, "\n\timports "), rule.reason)
			}
		}
	}
}

// A rule about packages that are not there would pass for ever.
func TestRulesAreAboutPackagesThatExist(t *testing.T) {
	all := load(t)
	for _, rule := range rules {
		for _, path := range append(append([]string{}, rule.packages...), rule.except...) {
			if !anyUnder(all, path) {
				t.Errorf("there is no package %s (rule: %s)", path, rule.reason)
			}
		}
	}
}

func anyUnder(all map[string]*unit, root string) bool {
	for path := range all {
		if under(path, []string{root}) {
			return true
		}
	}
	return false
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for path, unit := range load(t) {
		if !documented(t, append(append([]string{}, unit.files...), unit.testFiles...)) {
			t.Errorf("%s has no package comment: say in doc.go what it is for and what it never does", path)
		}
	}
}

// The table says what each package knows: one that nobody could describe there has no place.
func TestPackageTableIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/request-path.md")
	if err != nil {
		t.Fatal(err)
	}
	all, listed := load(t), map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:pkg|cmd)/[^`]+)`").FindAllStringSubmatch(string(data), -1) {
		if listed[row[1]] = true; !anyUnder(all, module+"/"+row[1]) {
			t.Errorf("docs/request-path.md lists %s, which isn't there", row[1])
		}
	}
	for path := range all {
		name, ours := strings.CutPrefix(path, module+"/pkg/")
		top, _, _ := strings.Cut(name, "/")
		if ours && !slices.ContainsFunc(slices.Collect(maps.Keys(listed)), func(row string) bool { return under(row, []string{"pkg/" + top}) }) {
			t.Errorf("docs/request-path.md does not say what %s is for", path)
		}
	}
}

func TestMainIsSmall(t *testing.T) {
	mains, err := filepath.Glob("../../cmd/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(mains) == 0 {
		t.Fatal("there is no cmd/*/main.go")
	}
	for _, name := range mains {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(data, []byte("\n")); lines >= maxMainLines {
			t.Errorf("%s has %d lines, %d are too many: a command is a file of its own", name, lines, maxMainLines)
		}
	}
}

func TestModuleHasNoReplaceDirectives(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod: %q: kcp and kro upgrade on their own clocks, and forks are not ours to follow", strings.TrimSpace(line))
		}
	}
}
