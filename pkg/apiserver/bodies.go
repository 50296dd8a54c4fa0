package apiserver

import (
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/budget"
)

// withinBounds lets a request be read only as far as it keeps within the bounds on its size and its depth.
func withinBounds(limits budget.Limits, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil {
			r.Body = &boundedBody{ReadCloser: r.Body, limits: limits}
		}
		handler(w, r)
	}
}

// boundedBody is a body that ends in a Status when there is too much of it. The handlers of k8s.io/apiserver answer
// with that.
//
// It looks at the nesting of JSON before anybody decodes it: handlers do things with what they have decoded that take
// the product of size and depth. YAML is looked at once it is decoded.
type boundedBody struct {
	io.ReadCloser
	limits  budget.Limits
	size    int
	nesting nesting
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += n
	if limit := b.limits.Of(budget.RequestBytes); b.size > limit {
		return 0, apierrors.NewRequestEntityTooLargeError(b.limits.Exceeded(budget.RequestBytes, "more").Error())
	}
	if deepest := b.nesting.follow(p[:n]); deepest > b.limits.Of(budget.Depth) {
		message := b.limits.Exceeded(budget.Depth, fmt.Sprint(deepest, " or more")).Error()
		return 0, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message)
	}
	return n, err
}

// nesting follows the brackets of JSON.
type nesting struct {
	depth, deepest  int
	quoted, escaped bool
	begun, foreign  bool // foreign: it isn't JSON
}

// follow returns the greatest depth so far.
func (n *nesting) follow(text []byte) int {
	if n.foreign {
		return 0
	}
	for _, c := range text {
		switch {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = c == '\\', c != '"'
		case c == '"':
			n.quoted = true
		case c == '{' || c == '[':
			n.begun = true
			n.depth++
			n.deepest = max(n.deepest, n.depth)
		case c == '}' || c == ']':
			n.depth--
		case !n.begun && c > ' ':
			n.foreign = true
			return 0
		}
	}
	return n.deepest
}
