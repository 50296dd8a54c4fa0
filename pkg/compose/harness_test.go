package compose_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

var server *planetest.Server

func TestMain(m *testing.M) {
	started, err := planetest.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server = started
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

const (
	consumer = logicalcluster.Name("consumer1")
	export   = "databases.example.org"
)

var exportKey = v1alpha1.ExportKey{Cluster: "provider1", Name: export}

// fixture is one instance of a blueprint, with planes of its own: the consumer's workspace is one
// namespace, the provider's another, each behind a proxy that can fail.
type fixture struct {
	*testing.T
	consumerNamespace, providerNamespace string
	consumerProxy, providerProxy         *planetest.Workspaces

	client   kubernetes.Interface
	planes   *split
	composer *compose.Composer
	program  *engine.Program
	store    *store
}

// split sends targets to different sets, so that each has a proxy of its own.
type split struct{ consumer, provider *plane.Set }

func (s *split) For(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, consumer logicalcluster.Name) (plane.Plane, error) {
	if target == v1alpha1.TargetConsumer {
		return s.consumer.For(ctx, target, export, consumer)
	}
	return s.provider.For(ctx, target, export, consumer)
}

type endpoint string

func (e endpoint) URL(context.Context, v1alpha1.ExportKey) (string, error) { return string(e), nil }

// newFixture compiles the blueprint, whose text may say CONSUMER and PROVIDER for the namespaces, and
// makes an instance of it that isn't stored yet.
func newFixture(t *testing.T, blueprint string, spec map[string]any) *fixture {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Admin)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		T: t, client: client,
		consumerProxy: planetest.NewWorkspaces(t, server.Admin),
		providerProxy: planetest.NewWorkspaces(t, server.Admin),
	}
	f.consumerNamespace, f.providerNamespace = f.namespace("consumer-"), f.namespace("provider-")
	f.planes = &split{consumer: f.set(f.consumerProxy), provider: f.set(f.providerProxy)}
	f.composer = compose.New(f.planes, compose.Options{})
	f.program = f.compile(blueprint)
	f.store = &store{instance: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1alpha1", "kind": "Database",
		"metadata": map[string]any{
			"name": "db", "namespace": f.consumerNamespace, "uid": "uid-of-" + f.consumerNamespace,
			"generation": int64(1), "creationTimestamp": "2026-01-02T03:04:05Z",
		},
		"spec": spec,
	}}}
	return f
}

func (f *fixture) set(proxy *planetest.Workspaces) *plane.Set {
	f.Helper()
	set, err := plane.New(plane.Config{
		Kcp:       proxy.User(server.Admin),
		Endpoints: endpoint(proxy.URL + "/services/apiexport/provider1/" + export),
	})
	if err != nil {
		f.Fatal(err)
	}
	return set
}

func (f *fixture) namespace(prefix string) string {
	f.Helper()
	created, err := f.client.CoreV1().Namespaces().Create(f.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
	}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return created.Name
}

// schemas adapts planes to the compiler.
type schemas struct {
	ctx     context.Context
	planes  *split
	targets map[v1alpha1.Target]*plane.Schemas
}

func (s schemas) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	if s.targets[target] == nil {
		known, err := s.planes.provider.Schemas(s.ctx, target, exportKey)
		if err != nil {
			return kro.Kind{}, err
		}
		s.targets[target] = known
	}
	found, err := s.targets[target].Resolve(s.ctx, gvk)
	if err != nil {
		return kro.Kind{}, err
	}
	return kro.Kind{GVR: found.GVR, Namespaced: found.Namespaced, Schema: found.Schema}, nil
}

func (f *fixture) compile(text string) *engine.Program {
	f.Helper()
	text = strings.NewReplacer("CONSUMER", f.consumerNamespace, "PROVIDER", f.providerNamespace).Replace(text)
	var blueprint v1alpha1.ResourceGraphDefinition
	if err := yaml.UnmarshalStrict([]byte(text), &blueprint); err != nil {
		f.Fatal(err)
	}
	blueprint.Name = "databases-" + f.consumerNamespace
	program, errs := kro.Compile(&blueprint, exportKey, schemas{f.Context(), f.planes, map[v1alpha1.Target]*plane.Schemas{}}, kro.Limits{})
	if len(errs) > 0 {
		f.Fatal(errs.ToAggregate())
	}
	return program
}

func (f *fixture) request() compose.Request {
	return compose.Request{Program: f.program, Consumer: consumer, Instance: f.store.get()}
}

// admit runs preflight and stores what it says, as a request would.
func (f *fixture) admit() *compose.Result {
	f.Helper()
	result, err := f.composer.Preflight(f.Context(), f.request())
	if err != nil {
		f.Fatalf("preflight: %v", err)
	}
	f.store.put(result.Instance)
	return result
}

// apply composes the stored instance, and fails the test if something went wrong with a child.
func (f *fixture) apply() *compose.Result {
	f.Helper()
	result, err := f.composer.Apply(f.Context(), f.request(), f.store)
	if err != nil {
		f.Fatalf("apply: %v", err)
	}
	if result.Err != nil {
		f.Fatalf("apply: %v", result.Err)
	}
	return result
}

// write is a whole request: preflight, storing, applying.
func (f *fixture) write() *compose.Result {
	f.Helper()
	f.admit()
	return f.apply()
}

// change edits the stored instance's spec as a user would.
func (f *fixture) change(spec map[string]any) {
	instance := f.store.get()
	fields, _, _ := unstructured.NestedMap(instance.Object, "spec")
	maps.Copy(fields, spec)
	instance.Object["spec"] = fields
	instance.SetGeneration(instance.GetGeneration() + 1)
	f.store.put(instance)
}

// refused runs preflight and expects a refusal, after which no child exists.
func (f *fixture) refused() metav1.Status {
	f.Helper()
	_, err := f.composer.Preflight(f.Context(), f.request())
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		f.Fatalf("got %v, want a refusal", err)
	}
	return status.Status()
}

// nothingWritten says that neither plane has an object of the instance's.
func (f *fixture) nothingWritten() {
	f.Helper()
	for _, namespace := range []string{f.consumerNamespace, f.providerNamespace} {
		for _, name := range f.configMaps(namespace) {
			f.Errorf("left behind: ConfigMap %s/%s", namespace, name)
		}
		secrets, err := f.client.CoreV1().Secrets(namespace).List(f.Context(), metav1.ListOptions{})
		if err != nil {
			f.Fatal(err)
		}
		for _, secret := range secrets.Items {
			f.Errorf("left behind: Secret %s/%s", namespace, secret.Name)
		}
	}
}

// configMaps is the names of those of a namespace.
func (f *fixture) configMaps(namespace string) []string {
	f.Helper()
	list, err := f.client.CoreV1().ConfigMaps(namespace).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

// child reads the only ConfigMap of the node.
func (f *fixture) child(node string) *corev1.ConfigMap {
	f.Helper()
	selector := v1alpha1.LabelInstanceUID + "=" + string(f.store.get().GetUID()) + "," + v1alpha1.LabelNode + "=" + node
	list, err := f.client.CoreV1().ConfigMaps("").List(f.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		f.Fatal(err)
	}
	if len(list.Items) != 1 {
		f.Fatalf("%d ConfigMaps of node %s, want one", len(list.Items), node)
	}
	return &list.Items[0]
}

// rows is the inventory, by node and, for lists, in order.
func rows(t *testing.T, instance *unstructured.Unstructured) map[string][]v1alpha1.ComposedResource {
	t.Helper()
	var composition v1alpha1.Composition
	fields, _, _ := unstructured.NestedMap(instance.Object, "status", "composition")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &composition); err != nil {
		t.Fatal(err)
	}
	byNode := map[string][]v1alpha1.ComposedResource{}
	for _, row := range composition.Resources {
		byNode[row.ID] = append(byNode[row.ID], row)
	}
	return byNode
}

// expectStates compares the states of nodes with one child each.
func expectStates(t *testing.T, instance *unstructured.Unstructured, want map[string]v1alpha1.State) {
	t.Helper()
	got := map[string]v1alpha1.State{}
	for node, list := range rows(t, instance) {
		for _, row := range list {
			got[node] = row.State
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
}

func condition(t *testing.T, instance *unstructured.Unstructured, conditionType string) string {
	t.Helper()
	conditions, _, _ := unstructured.NestedSlice(instance.Object, "status", "conditions")
	for _, c := range conditions {
		if fields := c.(map[string]any); fields["type"] == conditionType {
			return fields["status"].(string)
		}
	}
	return ""
}

// store is what pkg/registry/instance does for one instance, in memory: versions, and Conflict for
// whoever has an older one.
type store struct {
	mu       sync.Mutex
	instance *unstructured.Unstructured
	version  int
	// before is called with each status that is about to be recorded.
	before func(*unstructured.Unstructured)
	writes int
}

func (s *store) get() *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instance.DeepCopy()
}

func (s *store) put(instance *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.instance = instance.DeepCopy()
	s.instance.SetResourceVersion(strconv.Itoa(s.version))
}

func (s *store) Record(_ context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if s.before != nil {
		s.before(instance)
	}
	if instance.GetResourceVersion() != s.get().GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: "example.org", Resource: "databases"}, instance.GetName(), errors.New("written by somebody else"))
	}
	if fmt.Sprint(instance.Object["status"]) != fmt.Sprint(s.get().Object["status"]) {
		s.put(instance)
		s.writes++
	}
	return s.get(), nil
}

// as is planes as krop's user, who has no rights unless the test grants them.
func (f *fixture) as(proxy *planetest.Workspaces) *plane.Set {
	f.Helper()
	set, err := plane.New(plane.Config{Kcp: proxy.User(server.Krop), Endpoints: endpoint(proxy.URL)})
	if err != nil {
		f.Fatal(err)
	}
	return set
}
