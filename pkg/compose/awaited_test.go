package compose_test

import (
	"net/http"
	"strings"
	"testing"
)

// awaiting has a Secret in the consumer's workspace that waits for a value nobody has filled in yet.
const awaiting = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
  resources:
  - id: server
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: server, namespace: PROVIDER}
  - id: access
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${schema.metadata.name}-access", namespace: "${schema.metadata.namespace}"}
      stringData:
        address: ${server.data.address}
`

func TestUnacceptedClaimIsNamedBeforeTheChildCanBeRendered(t *testing.T) {
	f := newFixture(t, awaiting, map[string]any{})
	f.consumerProxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/secrets") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"secrets is forbidden: User \"krop\" cannot create resource \"secrets\" in API group \"\" in the namespace \"x\": access denied"}`))
		return true
	})
	status := f.refused()
	if status.Code != http.StatusForbidden {
		t.Errorf("code %d, want 403", status.Code)
	}
	for _, part := range []string{`resource "access" (consumer Secret)`, `{group: "", resource: secrets`, export} {
		if !strings.Contains(status.Message, part) {
			t.Errorf("%q lacks %s", status.Message, part)
		}
	}
	f.nothingWritten()
}

func TestSampleOfAnAwaitedChildRefusesNothingElse(t *testing.T) {
	f := newFixture(t, awaiting, map[string]any{})
	f.consumerProxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/secrets") {
			return false
		}
		http.Error(w, "no answer to samples", http.StatusInternalServerError)
		return true
	})
	f.admit()
	if got := rows(t, f.store.get())["access"][0].WaitingFor; !strings.HasPrefix(got, "server.data.address") {
		t.Errorf("access waits for %q", got)
	}
}
