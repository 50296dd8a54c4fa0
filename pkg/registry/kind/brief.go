package kind

import (
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"go.opendefense.cloud/krop/pkg/budget"
)

// briefEncoder cuts what a Status says. Validation quotes values, decoding quotes whole bodies, and both may be
// megabytes; whatever refuses something, its answer passes here.
type briefEncoder struct{ runtime.Encoder }

// Encode implements runtime.Encoder.
func (e briefEncoder) Encode(object runtime.Object, w io.Writer) error {
	if status, ok := object.(*metav1.Status); ok {
		object = brief(status)
	}
	return e.Encoder.Encode(object, w)
}

func brief(status *metav1.Status) *metav1.Status {
	causes := 0
	if status.Details != nil {
		causes = len(status.Details.Causes)
	}
	if len(status.Message) <= budget.MessageBytes.Default && causes == 0 {
		return status
	}
	out := status.DeepCopy()
	if causes > 0 {
		withoutBody(out)
	}
	out.Message = budget.Cut(out.Message, min(max(1, causes), maxListed))
	if causes == 0 {
		return out
	}
	out.Details.Causes = out.Details.Causes[:min(causes, budget.Causes.Default)]
	for i := range out.Details.Causes {
		out.Details.Causes[i].Message = budget.Cut(out.Details.Causes[i].Message, 1)
	}
	return out
}

// patchField is where the API machinery reports what it can't decode of a patched object.
const patchField = "patch"

// withoutBody takes out the patched object, which the API machinery quotes as a whole, status and managed fields
// included, before it says which field it doesn't know.
func withoutBody(status *metav1.Status) {
	cause := &status.Details.Causes[0]
	body := strings.Index(cause.Message, `"`)
	reason := strings.LastIndex(cause.Message, `": strict decoding error: `)
	if cause.Field != patchField || body < 0 || reason <= body {
		return
	}
	told := cause.Message[:body] + cause.Message[reason+len(`": `):]
	status.Message = strings.Replace(status.Message, cause.Message, told, 1)
	cause.Message = told
}

// maxListed is how many causes at their longest a message has room for, which repeats them all.
const maxListed = 4
