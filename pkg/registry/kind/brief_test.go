package kind

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/budget"
)

func TestAnswersAreBrief(t *testing.T) {
	status := &metav1.Status{Message: strings.Repeat("ü", 1<<20), Details: &metav1.StatusDetails{}}
	for range 1000 {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: "spec.text", Message: strings.Repeat("x", 1<<20)})
	}
	told := brief(status)
	most := budget.MessageBytes.Default + 100 // says how much was cut
	if len(told.Message) > maxListed*most || !strings.HasSuffix(told.Message, "bytes)") {
		t.Errorf("the message has %d bytes", len(told.Message))
	}
	if strings.ContainsRune(told.Message, '\uFFFD') {
		t.Error("a character was cut in two")
	}
	if len(told.Details.Causes) != budget.Causes.Default {
		t.Errorf("%d causes, want %d", len(told.Details.Causes), budget.Causes.Default)
	}
	if size := len(told.Details.Causes[0].Message); size > most {
		t.Errorf("a cause has %d bytes", size)
	}
	if len(status.Details.Causes) != 1000 {
		t.Error("the original has changed")
	}
	short := &metav1.Status{Message: "as it is"}
	if brief(short) != short {
		t.Error("a short one was copied")
	}
}
