package architecture

import (
	"bytes"
	"os"
	"path/filepath"
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
