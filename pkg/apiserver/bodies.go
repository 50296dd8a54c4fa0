package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/registry"
)

// heavyBody is from what size on a body takes turns with other work: below it, all that is done to it before it is
// composed takes a few milliseconds.
const heavyBody = 32 << 10

// withinBounds lets a request be read only as far as it keeps within the bounds on its size, depth and number of values.
func (s *exports) withinBounds(served *registry.Served, handler http.HandlerFunc) http.HandlerFunc {
	object := budget.InstanceBytes
	if served.Program == nil {
		object = budget.BlueprintBytes
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil {
			ctx, seat := budget.WithSeat(r.Context(), budget.Cores, routeFrom(r.Context()).cluster.String())
			defer seat.Leave()
			r = r.WithContext(ctx)
			r.Body = &boundedBody{ReadCloser: r.Body, ctx: ctx, limits: s.limits, object: object, seat: seat}
		}
		handler(w, r)
	}
}

// boundedBody is a body that ends in a Status when there is too much of it. The handlers of k8s.io/apiserver answer
// with that.
//
// It looks at JSON before anybody decodes it: until validation is over, things are done that take the product of size
// and depth, or microseconds for each value. YAML is looked at once it is decoded.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context // of the request that it is the body of
	limits budget.Limits
	object *budget.Bound
	seat   *budget.Seat

	size int
	text jsonText
}

// Read implements io.Reader. With its end comes the request's turn to be worked on.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += n
	b.text.follow(p[:n])
	if refusal := b.refusal(); refusal != nil {
		return 0, refusal
	}
	if errors.Is(err, io.EOF) && b.size > heavyBody {
		if busy := b.seat.Take(b.ctx); busy != nil {
			return 0, registry.Refused(busy)
		}
	}
	return n, err
}

func (b *boundedBody) refusal() error {
	text := &b.text
	for _, check := range []error{
		b.limits.Check(budget.RequestBytes, b.size),
		b.limits.Check(b.object, text.size),
		b.limits.Check(budget.Values, text.values),
	} {
		if check != nil { // how much it would have been isn't known
			var over *budget.Over
			errors.As(check, &over)
			return apierrors.NewRequestEntityTooLargeError(b.limits.More(over.Bound).Error())
		}
	}
	if text.deepest > b.limits.Of(budget.Depth) {
		message := b.limits.Exceeded(budget.Depth, fmt.Sprint(text.deepest, " or more")).Error()
		return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message)
	}
	return nil
}
