package messages

import (
	"slices"
	"sort"
	"strings"
	"testing"
)

func TestThePageHasEveryMessage(t *testing.T) {
	page := entries(t)
	for _, told := range demanded(load(t)) {
		if !shows(page, told.text) {
			t.Errorf("%s: docs/errors.md doesn't say what to do about this message (make update-messages adds a row):\n\t%s", told.where, told.text)
		}
	}
}

// Whatever the page shows has to be made of texts of the sources, or to be known as somebody else's.
func TestThePageShowsNothingThatIsNotSaid(t *testing.T) {
	vocabulary := coresOf(load(t))
	for _, e := range entries(t) {
		for _, shown := range e.shown {
			if rest := uncovered(normal(shown), vocabulary); rest != "" {
				t.Errorf("docs/errors.md:%d: nothing in the sources says %q (of %q)", e.line, rest, shown)
			}
		}
	}
}

// Reasons, conditions and states are told apart from messages by being one word.
func TestThePageHasEveryReasonAndState(t *testing.T) {
	page := entries(t)
	for _, constant := range load(t).constants {
		if !slices.ContainsFunc(page, func(e entry) bool { return slices.Contains(e.shown, constant) }) {
			t.Errorf("docs/errors.md doesn't say what %q means in a status", constant)
		}
	}
}

func TestEveryRowSaysWhatItMeansAndWhatToDo(t *testing.T) {
	for _, e := range entries(t) {
		if len(e.cells) < 2 || slices.Contains(e.cells, "") {
			t.Errorf("docs/errors.md:%d: a column is empty: %s", e.line, strings.Join(e.cells, " | "))
		}
	}
}

// An exception that nothing needs any more would hide the next message that is like it.
func TestExceptionsAreNeeded(t *testing.T) {
	files, known := map[string]bool{}, map[string]bool{}
	for _, told := range load(t).texts {
		files[told.file()], known[told.text] = true, true
	}
	for file, reason := range silent {
		if !files[file] || reason == "" {
			t.Errorf("%s says nothing, or has no reason to be left out: %q", file, reason)
		}
	}
	for text, reason := range internal {
		if !known[text] || reason == "" {
			t.Errorf("nothing says %q, or there is no reason to leave it out: %q", text, reason)
		}
	}
	page := entries(t)
	for text, whose := range quoted {
		if !shows(page, text) || whose == "" {
			t.Errorf("the page doesn't show %q, or it isn't known whose it is: %q", text, whose)
		}
	}
}

// demanded are the messages that the page must have, each once.
func demanded(all sources) []said {
	var messages []said
	known := map[string]bool{}
	for _, told := range all.texts {
		_, quiet := silent[told.file()]
		_, hidden := internal[told.text]
		if quiet || hidden || told.wraps || known[told.text] || !isMessage(told.text) {
			continue
		}
		known[told.text] = true
		messages = append(messages, told)
	}
	return messages
}

// coresOf are all texts that a message can be made of, the longest first.
func coresOf(all sources) []string {
	cores := slices.Clone(all.constants)
	for _, told := range all.texts {
		// One bare word is in any message.
		if c := core(told.text); words(c) > 1 || strings.ContainsAny(c, `"()`) {
			cores = append(cores, c)
		}
	}
	for text := range quoted {
		cores = append(cores, core(text))
	}
	sort.Slice(cores, func(a, b int) bool { return len(cores[a]) > len(cores[b]) })
	return slices.Compact(cores)
}

// uncovered are the words of a text that none of the others has.
func uncovered(text string, vocabulary []string) string {
	for _, known := range vocabulary {
		for known != "" && within(text, known) {
			text = strings.Replace(text, known, blank, 1)
		}
	}
	if words(text) == 0 {
		return ""
	}
	return core(normal(text))
}
