package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// frontProxy is the common name of the proxy that the test bed's krop lets name users.
const frontProxy = "kcp-front-proxy"

// TestUsersComeDirectlyOnceTheConsumerAcceptsTheClaim asks krop itself, as somebody who doesn't come through kcp.
func TestUsersComeDirectlyOnceTheConsumerAcceptsTheClaim(t *testing.T) {
	consumer := newConsumer(t, "direct") // its binding is Ready without the claim
	consumer.create(bundle("reached", nil))
	target := theEndpoint(t) + "/clusters/" + consumer.cluster() + "/apis/test.example.org/v1alpha1/namespaces/default/bundles/reached"
	own := clientOf(t, pki.Client, pki.Identity{Name: string(consumer.user)})
	proxied := clientOf(t, pki.RequestHeader, pki.Identity{Name: frontProxy})
	stranger := clientOf(t, pki.Client, pki.Identity{Name: "direct-stranger"})

	if code, body := ask(t, own, target); code != http.StatusForbidden || !strings.Contains(body, "subjectaccessreviews") {
		t.Errorf("without the claim the answer is %d, want 403 that names the claim: %s", code, body)
	}
	consumer.acceptReviews()
	eventually(t, "the owner is served directly", func() error {
		if code, body := ask(t, own, target); code != http.StatusOK {
			return fmt.Errorf("%d: %s", code, body)
		}
		return nil
	})
	if code, body := askThrough(t, proxied, target, string(consumer.user)); code != http.StatusOK {
		t.Errorf("the owner, named by a proxy, is answered %d: %s", code, body)
	}
	if code, body := askThrough(t, proxied, target, "direct-stranger"); code != http.StatusForbidden {
		t.Errorf("a stranger, named by a proxy, is answered %d: %s", code, body)
	}
	if code, body := ask(t, stranger, target); code != http.StatusForbidden {
		t.Errorf("a stranger is answered %d: %s", code, body)
	}
}

// acceptReviews accepts the claim that direct access takes, beside those that are accepted.
func (a actor) acceptReviews() {
	a.t.Helper()
	a.kubectl("patch", "apibindings.apis.kcp.io", "bundles", "--type=json", "-p", `[{"op": "add", "path": "/spec/permissionClaims/-", "value":
		{"group": "authorization.k8s.io", "resource": "subjectaccessreviews", "verbs": ["create"], "state": "Accepted", "selector": {"matchAll": true}}}]`)
}

// askThrough asks as a proxy that names one user.
func askThrough(t *testing.T, proxy *http.Client, target, user string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	must(t, err)
	request.Header.Set("X-Remote-User", user)
	return send(t, proxy, request)
}
