package messages

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "add rows for messages that docs/errors.md doesn't have, and drop those that nothing says any more, in its last section")

// lastSection has what belongs to none of the situations that the page is ordered by.
const lastSection = "## Other messages"

// TestMain rewrites the page before the tests run, which then complain of columns that a person has yet to fill in.
func TestMain(m *testing.M) {
	flag.Parse()
	if *update {
		if err := rewrite(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// rewrite keeps the rows of the last section that are still said, and adds one for each message that the page
// doesn't have.
func rewrite() error {
	data, err := os.ReadFile(pagePath)
	if err != nil {
		return err
	}
	above, below, found := strings.Cut(string(data), lastSection+"\n")
	if !found {
		return fmt.Errorf("docs/errors.md has no section %q", lastSection)
	}
	all, err := collected()
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(below) {
		e := row("", strings.TrimSpace(line), 0)
		if !strings.HasPrefix(line, "| `") || isSaid(e, coresOf(all)) {
			out.WriteString(line)
		}
	}
	kept := above + lastSection + "\n" + out.String()
	for _, told := range demanded(all) {
		if !shows(parsed(kept), told.text) {
			kept += fmt.Sprintf("| `%s` | | |\n", strings.ReplaceAll(told.text, "|", `\|`))
		}
	}
	return os.WriteFile(pagePath, []byte(kept), 0o644)
}

// isSaid says whether all that the row shows is made of texts of the sources.
func isSaid(e entry, vocabulary []string) bool {
	for _, shown := range e.shown {
		if uncovered(normal(shown), vocabulary) != "" {
			return false
		}
	}
	return true
}
