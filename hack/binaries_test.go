// Package hack tests the scripts of this folder: what they do is bash, and what it must hold is told here.
package hack

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeBuild stands in for the builds that take minutes. It counts its runs, and fails when told to.
const fakeBuild = `#!/usr/bin/env bash
set -euo pipefail
echo built >> "$BUILDS"
echo half > "$2/kcp"
[ -z "${BUILD_FAILS-}" ]
echo whole > "$2/kcp"
`

func TestBinariesAreBuiltOncePerMachine(t *testing.T) {
	b := newBuilder(t)
	first, second := b.checkout(t), b.checkout(t)
	b.mustProvide(t, first)
	b.mustProvide(t, second)
	if got := b.builds(t); got != 2 { // one of kcp, one of kube
		t.Errorf("%d builds, want 2", got)
	}
	if got := read(t, filepath.Join(second, "bin", "kcp")); got != "whole\n" {
		t.Errorf("bin/kcp holds %q", got)
	}
}

func TestBinariesAreBuiltAgainWhenTheirModulesChange(t *testing.T) {
	b := newBuilder(t)
	checkout := b.checkout(t)
	b.mustProvide(t, checkout)
	write(t, filepath.Join(checkout, "kcp", "go.sum"), "another sum\n", 0o600)
	b.mustProvide(t, checkout)
	if got := b.builds(t); got != 3 {
		t.Errorf("%d builds, want 3: both, then kcp again", got)
	}
}

func TestAnUnfinishedBuildIsNotKept(t *testing.T) {
	b := newBuilder(t)
	checkout := b.checkout(t)
	if out, err := b.provide(checkout, "BUILD_FAILS=yes"); err == nil {
		t.Fatalf("a failed build is not told: %s", out)
	}
	b.mustProvide(t, checkout)
	if got := read(t, filepath.Join(checkout, "bin", "kcp")); got != "whole\n" {
		t.Errorf("bin/kcp holds %q", got)
	}
	kept, err := filepath.Glob(filepath.Join(b.cache, "kcp-*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept %v, error %v", kept, err)
	}
}

// builder is a machine with checkouts and one cache.
type builder struct {
	cache, log string
}

func newBuilder(t *testing.T) builder {
	dir := t.TempDir()
	return builder{cache: filepath.Join(dir, "cache"), log: filepath.Join(dir, "builds")}
}

// checkout copies the scripts and module files, with the build scripts replaced.
func (b builder) checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, component := range []string{"kcp", "kube"} {
		if err := os.CopyFS(filepath.Join(dir, component), os.DirFS(component)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, component, "build.sh")); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, component, "build.sh"), fakeBuild, 0o700)
	}
	write(t, filepath.Join(dir, "testbed-binaries.sh"), read(t, "testbed-binaries.sh"), 0o700)
	return dir
}

func (b builder) provide(checkout string, env ...string) ([]byte, error) {
	command := exec.Command(filepath.Join(checkout, "testbed-binaries.sh"), filepath.Join(checkout, "bin"))
	command.Env = append(append(os.Environ(), "KROP_CACHE="+b.cache, "BUILDS="+b.log), env...)
	return command.CombinedOutput()
}

func (b builder) mustProvide(t *testing.T, checkout string) {
	t.Helper()
	if out, err := b.provide(checkout); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (b builder) builds(t *testing.T) int {
	t.Helper()
	return strings.Count(read(t, b.log), "built")
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, file, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
