package budget

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table in docs/admin.md")

const (
	page  = "../../docs/admin.md"
	begin = "<!-- bounds: written by go test ./pkg/budget -update -->\n"
	end   = "<!-- end of bounds -->\n"
)

// TestAdministratorsAreToldOfEveryBound compares docs/admin.md with the declarations.
func TestAdministratorsAreToldOfEveryBound(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table: want %q and %q", page, begin, end)
	}
	want := before + begin + table() + end + after
	if want == string(content) {
		return
	}
	if !*update {
		t.Fatalf("%s doesn't tell of the bounds as they are: go test ./pkg/budget -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| flag, or name if it is fixed | bounds | default | why | over it |\n|---|---|---|---|---|\n")
	for _, bound := range All() {
		unit := ""
		if bound.Unit != "" {
			unit = " " + bound.Unit
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d%s | %s | %s |\n", bound.named(), bound.Of, bound.Default, unit, bound.Why, bound.Answer)
	}
	return b.String()
}

func TestBoundsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, bound := range All() {
		if bound.Name == "" || bound.Of == "" || bound.Why == "" || bound.Answer == "" || bound.Default <= 0 {
			t.Errorf("%+v lacks something", bound)
		}
		if names[bound.Name] {
			t.Errorf("there are two of %s", bound.Name)
		}
		names[bound.Name] = true
		if bound.Most > 0 && bound.Default > bound.Most {
			t.Errorf("the default of %s is more than it may be", bound.Name)
		}
	}
}

func TestEveryRefusalNamesItsBound(t *testing.T) {
	limits := Limits{Resources: 2}
	if err := limits.Check(Resources, 2); err != nil {
		t.Errorf("as much as is allowed: %v", err)
	}
	want := "over budget: resources of the blueprint: 3, at most 2 are allowed (--max-resources)"
	if err := limits.Check(Resources, 3); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := (Limits{}).More(ChildBytes); !strings.HasSuffix(err.Error(), "more, at most 1048576 bytes are allowed (--max-child-bytes)") {
		t.Errorf("got %v", err)
	}
	if !IsBusy(fmt.Errorf("wrapped: %w", limits.More(Writes))) || IsBusy(limits.More(Resources)) {
		t.Error("what may be had a moment later is told from what may not")
	}
}
