package messages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pagePath is the page, from here.
var pagePath = filepath.Join(root, "docs/errors.md")

// entry is one row of the page's tables.
type entry struct {
	section string
	// shown are the code spans of the first column: what a person sees.
	shown []string
	// cells are all columns.
	cells []string
	line  int
}

var (
	span = regexp.MustCompile("`([^`]+)`")
	rule = regexp.MustCompile(`^\|[-| :]+\|$`)
)

// entries are the rows of all tables, without their headers.
func entries(t *testing.T) []entry {
	t.Helper()
	data, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	found := parsed(string(data))
	if len(found) == 0 {
		t.Fatal("the page has no tables")
	}
	return found
}

func parsed(page string) []entry {
	var found []entry
	section, body := "", false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			section, body = strings.TrimLeft(line, "# "), false
		case rule.MatchString(line):
			body = true
		case !strings.HasPrefix(line, "|"):
			body = false
		case body:
			found = append(found, row(section, line, i+1))
		}
	}
	return found
}

func row(section, line string, number int) entry {
	cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "\x00", "|"))
	}
	e := entry{section: section, cells: cells, line: number}
	for _, match := range span.FindAllStringSubmatch(cells[0], -1) {
		e.shown = append(e.shown, match[1])
	}
	return e
}

// shows says whether the page has a text, as a whole or in a longer message.
func shows(page []entry, text string) bool {
	wanted := core(text)
	return slices.ContainsFunc(page, func(e entry) bool {
		return slices.ContainsFunc(e.shown, func(shown string) bool { return within(normal(shown), wanted) })
	})
}

// core is a text without the blanks and marks that it starts and ends with: it may be part of a longer message.
func core(text string) string {
	for {
		before := text
		text = strings.Trim(strings.TrimSuffix(strings.TrimPrefix(text, blank), blank), " ,;:")
		if text == before {
			return text
		}
	}
}

// within says whether a text is in another one, not starting or ending inside of a word.
func within(whole, part string) bool {
	for from := 0; ; {
		at := strings.Index(whole[from:], part)
		if at < 0 {
			return false
		}
		at += from
		if !letter(whole, at-1) && !letter(whole, at+len(part)) {
			return true
		}
		from = at + 1
	}
}

func letter(text string, at int) bool {
	return at >= 0 && at < len(text) && (text[at] >= 'a' && text[at] <= 'z' || text[at] >= 'A' && text[at] <= 'Z')
}
