package engine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestReadyNamesTheCulpritBeforeThoseThatWait(t *testing.T) {
	approval, creds := row("approval", "a"), row("creds", "")
	waiting := Waiting{Node: "approval", Expression: "approval.data.approved == 'true'"}
	approval.State, approval.WaitingFor = v1alpha1.StateApplied, waiting.String()
	creds.State, creds.WaitingFor = v1alpha1.StatePending, waiting.String()
	ready := Summarize(&Plan{}, []v1alpha1.ComposedResource{creds, approval}, nil).Conditions[0]
	want := `resource "approval" (consumer ConfigMap ns/a) is not ready: readyWhen approval.data.approved == 'true' does not hold; resource "creds"`
	if ready.Status != "False" || !strings.HasPrefix(ready.Message, want) {
		t.Errorf("%s", ready.Message)
	}
}

func TestMessagesAreNotCutWithinACharacter(t *testing.T) {
	for shift := range 4 {
		cut := Truncated(strings.Repeat("a", shift) + strings.Repeat("日", maxMessage))
		if !utf8.ValidString(cut) || len(cut) > maxMessage+len("…") {
			t.Errorf("shifted by %d: %d bytes, valid is %t", shift, len(cut), utf8.ValidString(cut))
		}
	}
}
