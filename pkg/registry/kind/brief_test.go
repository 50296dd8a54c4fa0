package kind

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/budget"
)

func TestAnswersAreBrief(t *testing.T) {
	status := &metav1.Status{Message: strings.Repeat("ü", 1<<20), Details: &metav1.StatusDetails{}}
	for range 1000 {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Field: "spec.text", Message: strings.Repeat("x", 1<<20)})
	}
	told := brief(status)
	most := budget.MessageBytes.Default + 100 // says how much was cut
	if len(told.Message) > maxListed*most || !strings.Contains(told.Message, " bytes) …") {
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

func TestWhatIsWrongIsToldBehindLongValues(t *testing.T) {
	const reason = `": it has to be shorter`
	told := brief(&metav1.Status{Message: `spec.text: Invalid value: "` + strings.Repeat("x", 1<<20) + reason})
	if !strings.HasPrefix(told.Message, "spec.text: ") || !strings.HasSuffix(told.Message, reason) {
		t.Errorf("told %q … %q", told.Message[:20], told.Message[len(told.Message)-40:])
	}
}

func TestPatchedObjectIsNotQuoted(t *testing.T) {
	refused := field.Invalid(field.NewPath("patch"), `{"spec":{"text":": strict decoding error: ","tytle":"`+strings.Repeat("x", 1<<20)+`"}}`,
		`strict decoding error: unknown field "spec.tytle"`)
	status := apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{refused}).Status()
	told := brief(&status)
	const want = `Invalid value: strict decoding error: unknown field "spec.tytle"`
	if !strings.HasSuffix(told.Message, " patch: "+want) {
		t.Errorf("message %q, want it to end with %q", told.Message, want)
	}
	if got := told.Details.Causes[0].Message; got != want {
		t.Errorf("cause %q, want %q", got, want)
	}
}
