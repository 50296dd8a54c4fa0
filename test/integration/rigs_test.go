package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/test/testbed"
)

// rigs are the instances in tests of the host.
var rigs = schema.GroupVersionResource{Group: "host.example.org", Version: "v1alpha1", Resource: "rigs"}

const rigBinding = `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: rigs}
spec:
  reference: {export: {path: "root:%s", name: rigs.host.example.org}}
  permissionClaims:
  - {group: "", resource: configmaps, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
`

// theRigs is the provider with the offering on the host published.
func theRigs(t *testing.T) actor {
	t.Helper()
	provider := theOffers(t)
	must(t, rigsReady())
	return provider
}

var rigsReady = sync.OnceValue(func() error { return publishRigs(context.Background(), offers) })

func publishRigs(ctx context.Context, provider testbed.User) error {
	if _, err := bed.Kubectl(provider).Run(ctx, "apply", "-f", testdata("rigs.yaml")); err != nil {
		return err
	}
	_, err := bed.Kubectl(provider).Run(ctx, "wait", "--for=condition=Ready", "rgd/rigs", "--timeout=30s")
	return err
}

// newRigger is a consumer who has bound the offering.
func newRigger(t *testing.T, name string) actor {
	t.Helper()
	theRigs(t)
	consumer := newUser(t, name)
	consumer.bindRigs(offers)
	return consumer
}

func (a actor) bindRigs(provider testbed.User) {
	a.t.Helper()
	_, err := bed.Kubectl(a.user).Apply(a.t.Context(), fmt.Sprintf(rigBinding, provider))
	must(a.t, err)
	a.kubectl("wait", "--for=condition=Ready", "apibinding/rigs", "--timeout=60s")
	eventually(a.t, "the binding is served, and its claim works", func() error {
		if _, err := a.in(rigs).List(a.t.Context(), metav1.ListOptions{}); err != nil {
			return err
		}
		_, err := a.in(rigs).Create(a.t.Context(), rig("probe", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// theHost is the operator of the host.
func theHost(t *testing.T) actor { return as(t, testbed.Host) }

func rig(name string, spec map[string]any) *unstructured.Unstructured {
	object := bundle(name, spec)
	object.SetAPIVersion("host.example.org/v1alpha1")
	object.SetKind("Rig")
	return object
}

func (a actor) createRig(name string, spec map[string]any) *unstructured.Unstructured {
	a.t.Helper()
	created, err := a.in(rigs).Create(a.t.Context(), rig(name, spec), metav1.CreateOptions{})
	must(a.t, err)
	return created
}

// onHost is a blueprint with one resource on the host.
func onHost(name, kind string, template map[string]any) *unstructured.Unstructured {
	return childless(name, kind, map[string]any{"id": "there", "target": "host", "template": template})
}

// hostConfigMap is a template.
func hostConfigMap() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "any", "namespace": namespace}}
}

// answer is what a server says to one request that nobody repeats.
type answer struct {
	*http.Response
	metav1.Status
}

// send sends a request as it is: clients of Kubernetes repeat what is answered with 503, without a word.
func (a actor) send(method, path string, object *unstructured.Unstructured) answer {
	a.t.Helper()
	config, err := bed.Config(a.user)
	must(a.t, err)
	client, err := rest.HTTPClientFor(config)
	must(a.t, err)
	var body bytes.Buffer
	if object != nil {
		must(a.t, json.NewEncoder(&body).Encode(object.Object))
	}
	request, err := http.NewRequestWithContext(a.t.Context(), method, strings.TrimSuffix(config.Host, "/")+path, &body)
	must(a.t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	must(a.t, err)
	defer func() { _ = response.Body.Close() }()
	said := answer{Response: response}
	_ = json.NewDecoder(response.Body).Decode(&said.Status) // an object is no Status, and isn't looked at
	return said
}

const (
	rigsPath       = "/apis/host.example.org/v1alpha1/namespaces/default/rigs"
	blueprintsPath = "/apis/krop.opendefense.cloud/v1alpha1/resourcegraphdefinitions"
)

// blueprint reads a blueprint that must be there.
func (a actor) blueprint(name string) *unstructured.Unstructured {
	a.t.Helper()
	object, err := a.Resource(blueprints).Get(a.t.Context(), name, metav1.GetOptions{})
	must(a.t, err)
	return object
}

// statusConditions a blueprint.
func statusConditions(blueprint *unstructured.Unstructured) []metav1.Condition {
	typed := &v1alpha1.ResourceGraphDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(blueprint.Object, typed); err != nil {
		return nil
	}
	return typed.Status.Conditions
}
