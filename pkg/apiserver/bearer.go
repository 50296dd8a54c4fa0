package apiserver

import (
	"context"
	"strings"
)

type bearerKey struct{}

// bearer is a token on its way to kcp, which authenticates it. It prints as nothing, so that no log of
// a context or of a struct can show it.
type bearer struct{ header string }

// String hides the token.
func (bearer) String() string { return "bearer (hidden)" }

// GoString hides the token.
func (b bearer) GoString() string { return b.String() }

// withBearer keeps the token of a request that is to be forwarded. Several are ambiguous and count as none.
func withBearer(ctx context.Context, authorization []string) context.Context {
	const scheme = "bearer "
	if len(authorization) != 1 || len(authorization[0]) <= len(scheme) || !strings.EqualFold(authorization[0][:len(scheme)], scheme) {
		return ctx
	}
	return context.WithValue(ctx, bearerKey{}, bearer{header: authorization[0]})
}

func bearerFrom(ctx context.Context) (bearer, bool) {
	found, ok := ctx.Value(bearerKey{}).(bearer)
	return found, ok
}
