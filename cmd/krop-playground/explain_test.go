package main

import (
	"errors"
	"strings"
	"testing"

	"go.opendefense.cloud/krop/test/testbed"
)

func TestPortsAreCheckedInWordsOfTheirOwn(t *testing.T) {
	for _, text := range []string{"abc", "", "0", "-1", "70000", "6443x"} {
		command := runCommand()
		err := command.ParseFlags([]string{"--port", text})
		if err == nil || strings.Contains(err.Error(), "strconv") || !strings.Contains(err.Error(), "PLAYGROUND_PORT") {
			t.Errorf("%q: %v", text, err)
		}
	}
	command := runCommand()
	if err := command.ParseFlags([]string{"--port", "7000"}); err != nil || command.Flags().Lookup("port").Value.String() != "7000" {
		t.Errorf("7000: %v", err)
	}
}

func TestAPlaygroundThatRunsIsExplained(t *testing.T) {
	err := explained(errors.Join(&testbed.InUseError{Dir: "/somewhere"}, nil))
	for _, part := range []string{"/somewhere", "Ctrl-C", "PLAYGROUND_DIR"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %s", err, part)
		}
	}
	other := errors.New("another")
	if !errors.Is(explained(other), other) {
		t.Error("another error is lost")
	}
}
