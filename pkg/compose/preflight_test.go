package compose_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// twoPlanes has a chain over both planes: the consumer's config is made from the provider's server, and
// access from config.
const twoPlanes = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      size: string | default="1"
      key: string | default="size"
      extra: string | default=""
    status:
      server: ${server.metadata.name}
  resources:
  - id: server
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: server, namespace: PROVIDER}
      data:
        size: ${string(int(schema.spec.size) * 2)}
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-config", namespace: "${schema.metadata.namespace}"}
      data:
        server: ${server.metadata.name}
        size: ${server.data.size}
  - id: access
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${schema.metadata.name}-access", namespace: "${schema.metadata.namespace}"}
      stringData:
        config: ${config.metadata.name}
        size: ${config.data.size}
`

func spec(fields ...string) map[string]any {
	out := map[string]any{"size": "1", "key": "size", "extra": ""}
	for i := 0; i < len(fields); i += 2 {
		out[fields[i]] = fields[i+1]
	}
	return out
}

func TestPreflightPlansAllLevelsAndWritesNothing(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	result, err := f.composer.Preflight(t.Context(), f.request())
	if err != nil {
		t.Fatal(err)
	}
	f.nothingWritten()
	if !slices.Contains(result.Instance.GetFinalizers(), v1alpha1.Finalizer) {
		t.Error("no finalizer")
	}
	for node, list := range rows(t, result.Instance) {
		if row := list[0]; row.Name == "" || row.UID != "" || row.State != v1alpha1.StatePending {
			t.Errorf("%s: %+v, want identity, no UID, Pending", node, row)
		}
	}
	if got := len(rows(t, result.Instance)); got != 3 {
		t.Errorf("%d nodes in the inventory, want 3", got)
	}
	request := f.request()
	request.DryRun = true
	if result, err = f.composer.Preflight(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	expectStates(t, result.Instance, map[string]v1alpha1.State{
		"server": v1alpha1.StateReady, "config": v1alpha1.StateReady, "access": v1alpha1.StateReady,
	})
	f.nothingWritten()
}

func TestExpressionThatFailsIsRefusedByField(t *testing.T) {
	f := newFixture(t, twoPlanes, spec("size", "large"))
	status := f.refused()
	if status.Code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid || status.Details.Kind != "Database" {
		t.Errorf("got %d %s of %s", status.Code, status.Reason, status.Details.Kind)
	}
	if len(status.Details.Causes) != 1 {
		t.Fatalf("causes %+v, want one", status.Details.Causes)
	}
	cause := status.Details.Causes[0]
	if cause.Field != "spec.size" || !strings.Contains(cause.Message, `"server"`) || !strings.Contains(cause.Message, "int(schema.spec.size)") {
		t.Errorf("cause %+v doesn't name field, node and expression", cause)
	}
	f.nothingWritten()
}

func TestQuotaAtALaterLevelLeavesNothingBehind(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.quota(f.consumerNamespace, "count/secrets", "0")
	status := f.refused()
	if status.Code != http.StatusForbidden || !strings.Contains(status.Message, "exceeded quota") {
		t.Errorf("got %d %q", status.Code, status.Message)
	}
	if cause := status.Details.Causes[0]; cause.Field != "resources[access]" || !strings.Contains(cause.Message, "consumer Secret") {
		t.Errorf("cause %+v doesn't name node and plane", cause)
	}
	f.nothingWritten()
}

// quota limits a resource of a namespace, and waits until the server enforces it.
func (f *fixture) quota(namespace, what, amount string) {
	f.Helper()
	hard := corev1.ResourceList{corev1.ResourceName(what): resource.MustParse(amount)}
	quota, err := f.client.CoreV1().ResourceQuotas(namespace).Create(f.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	// No controller runs here that would count.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourceName(what): resource.MustParse("0")}}
	if _, err := f.client.CoreV1().ResourceQuotas(namespace).UpdateStatus(f.Context(), quota, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

const independent = `
spec:
  schema:
    apiVersion: v1alpha1
    kind: Database
    group: example.org
    spec:
      size: string
      key: string
      extra: string
  resources:
  - id: calculated
    target: provider
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: calculated, namespace: PROVIDER}
      data:
        size: ${string(int(schema.spec.size))}
  - id: validated
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: validated, namespace: CONSUMER}
      data: "${{schema.spec.key: 'value'}}"
  - id: taken
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: taken, namespace: CONSUMER}
      data: {size: "${schema.spec.size}"}
`

func TestAllThatIsWrongIsReportedTogether(t *testing.T) {
	f := newFixture(t, independent, spec("size", "large", "key", "not a key!"))
	f.create(f.consumerNamespace, "taken")
	status := f.refused()
	if status.Code != http.StatusUnprocessableEntity {
		t.Errorf("code %d, want 422 to win", status.Code)
	}
	var fields []string
	for _, cause := range status.Details.Causes {
		fields = append(fields, cause.Field)
		if !strings.Contains(status.Message, cause.Message) {
			t.Errorf("the message lacks %q", cause.Message)
		}
	}
	slices.Sort(fields)
	if len(fields) != 3 || fields[0] != "resources[taken]" || !strings.HasPrefix(fields[1], "resources[validated].data") || fields[2] != "spec.size" {
		t.Errorf("causes of %q", fields)
	}
}

func (f *fixture) create(namespace, name string) *corev1.ConfigMap {
	f.Helper()
	created, err := f.client.CoreV1().ConfigMaps(namespace).Create(f.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"theirs": "1"},
	}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return created
}

func TestPlaneThatCannotBeReachedIsRefusedForNow(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.providerProxy.Close()
	status := f.refused()
	if status.Code != http.StatusServiceUnavailable || status.Details.RetryAfterSeconds == 0 {
		t.Errorf("got %d, retry after %d", status.Code, status.Details.RetryAfterSeconds)
	}
	if !strings.Contains(status.Message, "provider plane") || strings.Contains(status.Message, f.providerProxy.Listener.Addr().String()) {
		t.Errorf("%q doesn't name the plane, or tells where krop's servers are", status.Message)
	}
	f.nothingWritten()
}

func TestUnacceptedClaimIsNamed(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.consumerProxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
			`"message":"configmaps is forbidden: User \"krop\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"x\": access denied"}`))
		return true
	})
	status := f.refused()
	if status.Code != http.StatusForbidden {
		t.Errorf("code %d, want 403", status.Code)
	}
	for _, part := range []string{`"config"`, "consumer", "create", `{group: "", resource: configmaps`, export, "APIBinding"} {
		if !strings.Contains(status.Message, part) {
			t.Errorf("%q lacks %s", status.Message, part)
		}
	}
	f.nothingWritten()
}

func TestMissingRightOnTheProviderPlaneIsNamed(t *testing.T) {
	f := newFixture(t, twoPlanes, spec())
	f.planes.provider = f.as(f.providerProxy)
	status := f.refused()
	if status.Code != http.StatusForbidden || !strings.Contains(status.Message, "may not create configmaps on the provider plane") {
		t.Errorf("got %d %q", status.Code, status.Message)
	}
}
