package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"go.opendefense.cloud/krop/test/testbed"
)

// offers is the provider of the offerings that are only for tests.
const offers testbed.User = "offers"

const namespace = "default"

// Kinds in tests.
var (
	bundles    = schema.GroupVersionResource{Group: "test.example.org", Version: "v1alpha1", Resource: "bundles"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	quotas     = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	blueprints = schema.GroupVersionResource{Group: "krop.opendefense.cloud", Version: "v1alpha1", Resource: "resourcegraphdefinitions"}
	exports    = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apiexports"}
)

// actor is a user at work in the namespace "default" of a workspace.
type actor struct {
	t    *testing.T
	user testbed.User
	dynamic.Interface
}

func as(t *testing.T, user testbed.User) actor {
	t.Helper()
	config, err := bed.Config(user)
	must(t, err)
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return actor{t, user, client}
}

// theOffers is the provider, ready, with its offerings published. They stay for the whole run.
func theOffers(t *testing.T) actor {
	t.Helper()
	must(t, offersReady())
	return as(t, offers)
}

var offersReady = sync.OnceValue(func() error {
	ctx := context.Background()
	if err := bed.AddUser(ctx, offers); err != nil {
		return err
	}
	if err := bed.PrepareProvider(ctx, offers); err != nil {
		return err
	}
	if _, err := bed.Kubectl(offers).Run(ctx, "apply", "-f", testdata("bundles.yaml")); err != nil {
		return err
	}
	_, err := bed.Kubectl(offers).Run(ctx, "wait", "--for=condition=Ready", "rgd/bundles", "--timeout=30s")
	return err
})

// newConsumer is a workspace with its owner, who has bound the offerings unless told otherwise. It is named
// after the test.
func newConsumer(t *testing.T, name string) actor {
	t.Helper()
	consumer := newUser(t, name)
	consumer.bind()
	return consumer
}

// newUser is a workspace with its owner, who may bind the offerings.
func newUser(t *testing.T, name string) actor {
	t.Helper()
	theOffers(t)
	user := testbed.User(name)
	must(t, bed.AddUser(t.Context(), user))
	must(t, bed.AllowBinding(t.Context(), offers, user))
	return as(t, user)
}

// bind binds the offering and waits until it is served.
func (a actor) bind() {
	a.t.Helper()
	a.kubectl("apply", "-f", testdata("binding.yaml"))
	a.kubectl("wait", "--for=condition=Ready", "apibinding/bundles", "--timeout=60s")
	eventually(a.t, "the binding is served", func() error {
		_, err := a.Resource(bundles).List(a.t.Context(), metav1.ListOptions{})
		return err
	})
}

// kubectl runs a command that must succeed.
func (a actor) kubectl(args ...string) string {
	a.t.Helper()
	output, err := bed.Kubectl(a.user).Run(a.t.Context(), args...)
	must(a.t, err)
	return output.Stdout
}

// in is the objects of a resource in the namespace.
func (a actor) in(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return a.Resource(resource).Namespace(namespace)
}

// get reads an object that must be there.
func (a actor) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	a.t.Helper()
	object, err := a.in(resource).Get(a.t.Context(), name, metav1.GetOptions{})
	must(a.t, err)
	return object
}

// create makes a bundle that must be accepted.
func (a actor) create(bundle *unstructured.Unstructured) *unstructured.Unstructured {
	a.t.Helper()
	created, err := a.in(bundles).Create(a.t.Context(), bundle, metav1.CreateOptions{})
	must(a.t, err)
	return created
}

// patch merges into an object that must accept it.
func (a actor) patch(resource schema.GroupVersionResource, name, patch string) *unstructured.Unstructured {
	a.t.Helper()
	patched, err := a.in(resource).Patch(a.t.Context(), name, mergePatch, []byte(patch), metav1.PatchOptions{})
	must(a.t, err)
	return patched
}

func (a actor) delete(resource schema.GroupVersionResource, name string) {
	a.t.Helper()
	must(a.t, a.in(resource).Delete(a.t.Context(), name, metav1.DeleteOptions{}))
}

// cluster is the logical cluster of the actor's workspace.
func (a actor) cluster() string {
	a.t.Helper()
	cluster, err := bed.Cluster(a.t.Context(), a.user)
	must(a.t, err)
	return cluster
}

// bundle is an instance of the offering.
func bundle(name string, spec map[string]any) *unstructured.Unstructured {
	if spec == nil {
		spec = map[string]any{}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.org/v1alpha1",
		"kind":       "Bundle",
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       spec,
	}}
}

// testdata is the path of a file in testdata, wherever kubectl runs.
func testdata(name string) string {
	return filepath.Join(checkout, "test", "integration", "testdata", name)
}

func readTestdata(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(testdata(name))
	must(t, err)
	return strings.TrimSpace(string(data))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	// eventTimeout is many times what an event takes to have its effect on a busy machine, and far below the resync.
	eventTimeout = 30 * time.Second
	eventPoll    = 20 * time.Millisecond
)

// eventually waits until a check passes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := within(eventTimeout, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// within is nil once a check passes, or what it says when the time is up.
func within(patience time.Duration, check func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(eventPoll)
	}
}
