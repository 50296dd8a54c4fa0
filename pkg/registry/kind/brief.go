package kind

import (
	"io"

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

// maxListed is how many causes at their longest a message has room for, which repeats them all.
const maxListed = 4
