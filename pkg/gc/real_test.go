package gc_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/gc"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/pkg/registry/instance"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// The tests of this package run the loop over real parts: engine and composer, instances in a real
// etcd, children in a real kube-apiserver, which stands for every workspace. The resync is at an
// hour: whatever happens, happens by event.

const (
	consumer = logicalcluster.Name("consumer1")
	resync   = time.Hour
)

var (
	export     = v1alpha1.ExportKey{Cluster: "provider1", Name: "databases.example.org"}
	servers    = schema.GroupVersionResource{Group: "infra.example.org", Version: "v1", Resource: "servers"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// apiServer is started by the first test that needs it.
var apiServer = sync.OnceValues(func() (*planetest.Server, error) {
	server, err := planetest.Start(context.Background())
	if err != nil {
		return nil, err
	}
	return server, installServers(server)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if started {
		if server, _ := apiServer(); server != nil {
			server.Stop()
		}
	}
	os.Exit(code)
}

var started bool

// installServers adds a kind with a status that tests fill in, playing its controller.
func installServers(server *planetest.Server) error {
	client, err := apiextensions.NewForConfig(server.Admin)
	if err != nil {
		return err
	}
	object := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}},
		"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"endpoint": {Type: "string"}}},
	}}
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(context.Background(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: servers.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: servers.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "servers", Singular: "server", Kind: "Server", ListKind: "ServerList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: servers.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &object},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	discovery, err := discovery.NewDiscoveryClientForConfig(server.Admin)
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, err := discovery.ServerResourcesForGroupVersion(servers.GroupVersion().String())
		if err != nil {
			return false, nil
		}
		paths, err := discovery.OpenAPIV3().Paths()
		return err == nil && paths["apis/"+servers.GroupVersion().String()] != nil, nil
	})
}

// world is everything but the loop: it survives a loop that is stopped, as storage and planes do.
type world struct {
	t         testing.TB
	proxy     *planetest.Workspaces
	planes    *plane.Set
	composer  *compose.Composer
	admin     dynamic.Interface
	namespace string
	served    *registry.Served
	builder   *instance.Builder
	ctx       context.Context // of requests
	composed  func(v1alpha1.InstanceKey, *compose.Result, error)
}

// endpoint is the virtual workspace of the export.
type endpoint string

func (e endpoint) URL(context.Context, v1alpha1.ExportKey) (string, error) { return string(e), nil }

func newWorld(t testing.TB) *world {
	t.Helper()
	started = true
	server, err := apiServer()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, proxy: planetest.NewWorkspaces(t, server.Admin)}
	w.planes = must(plane.New(plane.Config{
		Kcp: w.proxy.User(server.Admin), Host: server.Admin,
		Endpoints: endpoint(w.proxy.URL + "/services/apiexport/provider1/databases.example.org"),
	}))(t)
	w.composer = compose.New(w.planes, compose.Options{})
	w.admin = must(dynamic.NewForConfig(server.Admin))(t)
	w.namespace = newNamespace(t, server)
	w.builder = &instance.Builder{
		NewStore: openStorage(t), Composer: w.composer, Namespaces: instance.PlaneNamespaces{Planes: w.planes}, Locks: &registry.Locks{}, Timeout: time.Minute,
		Composed: func(key v1alpha1.InstanceKey, result *compose.Result, err error) {
			if w.composed != nil {
				w.composed(key, result, err)
			}
		},
	}
	w.ctx = genericapirequest.WithNamespace(etcd.WithCluster(t.Context(), consumer), w.namespace)
	w.ctx = genericapirequest.WithRequestInfo(w.ctx, &genericapirequest.RequestInfo{APIGroup: "example.org", APIVersion: "v1", Resource: "databases"})
	return w
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newNamespace(t testing.TB, server *planetest.Server) string {
	t.Helper()
	client := must(kubernetes.NewForConfig(server.Admin))(t)
	created := must(client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gc-"},
	}, metav1.CreateOptions{}))(t)
	return created.Name
}

func openStorage(t testing.TB) func(*kind.Kind, v1alpha1.ExportKey) (*kind.Store, error) {
	t.Helper()
	server := must(etcd.Start(t.Context(), etcd.EmbeddedConfig{DataDir: t.TempDir(), UnsafeNoFsync: true}))(t)
	t.Cleanup(server.Stop)
	backend := must(etcd.Connect(t.Context(), etcd.BackendConfig{Client: server.Client()}))(t)
	t.Cleanup(backend.Close)
	return func(k *kind.Kind, export v1alpha1.ExportKey) (*kind.Store, error) {
		return kind.NewStore(k, kind.StoreOptions{Backend: backend, ExportCluster: export.Cluster})
	}
}

// compile makes a program of resources, in YAML. Children live in the test's namespace.
func (w *world) compile(resources string) *engine.Program {
	w.t.Helper()
	text := `
metadata: {name: databases-` + w.namespace + `}
spec:
  schema:
    group: example.org
    apiVersion: v1
    kind: Database
    spec: {size: "integer | default=1", extra: "boolean | default=false"}
    status: {endpoint: "${server.status.endpoint}"}
  resources:` + strings.ReplaceAll(resources, "NAMESPACE", w.namespace)
	var rgd v1alpha1.ResourceGraphDefinition
	if err := yaml.UnmarshalStrict([]byte(text), &rgd); err != nil {
		w.t.Fatal(err)
	}
	schemas := must(blueprint.PlaneSchemas(w.planes)(w.t.Context(), export.Cluster))(w.t)
	program, errs := kro.Compile(&rgd, export, schemas, kro.Limits{})
	if len(errs) > 0 {
		w.t.Fatal(errs.ToAggregate())
	}
	return program
}

const serverNode = `
  - id: server
    target: provider
    template:
      apiVersion: infra.example.org/v1
      kind: Server
      metadata: {name: "${schema.metadata.name}", namespace: NAMESPACE}
      spec: {size: "${schema.spec.size}"}
`

const configNode = `
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-config"}
      data: {endpoint: "${server.status.endpoint}"}
`

const extraNode = `
  - id: extra
    target: provider
    includeWhen: ["${schema.spec.extra}"]
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${schema.metadata.name}", namespace: NAMESPACE}
      stringData: {for: "${schema.metadata.name}"}
`

// publish makes the storage of a program, as a blueprint's request does.
func (w *world) publish(program *engine.Program) {
	w.t.Helper()
	if w.served != nil {
		swapped, ok, err := w.builder.Swap(w.served, program)
		if err != nil || !ok {
			w.t.Fatalf("program can't be swapped: %v", err)
		}
		w.served = swapped
		return
	}
	w.served = must(w.builder.Build(w.t.Context(), program))(w.t)
	w.t.Cleanup(w.served.Records.Destroy)
}

// loop runs a loop over the world until stop is called, or the test ends.
func (w *world) loop(config gc.Config) (loop *gc.Loop, stop func()) {
	config.Planes, config.Sources, config.Resync = w.planes, w.planes, resync
	if config.Composer == nil {
		config.Composer = w.composer
	}
	loop = gc.New(config)
	w.composed = loop.Composed
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); loop.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.t.Cleanup(stop)
	loop.Serve(export, w.served.Program, w.served.Records)
	return loop, stop
}

func (w *world) storage() *instance.REST { return w.served.Storage["databases"].(*instance.REST) }

func (w *world) create(name string, spec map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	created, err := w.storage().Create(w.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Database",
		"metadata": map[string]any{"name": name, "namespace": w.namespace},
		"spec":     spec,
	}}, nil, &metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return created.(*unstructured.Unstructured)
}

// store puts an instance into storage as a request does that crashes before it writes any child.
func (w *world) store(name string) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Database",
		"metadata": map[string]any{"name": name, "namespace": w.namespace, "finalizers": []any{v1alpha1.Finalizer}},
		"spec":     map[string]any{"size": int64(1)},
	}}
	created, err := w.storage().Store.Create(kind.WithInternal(w.ctx), object, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return created.(*unstructured.Unstructured)
}

func (w *world) get(name string) *unstructured.Unstructured {
	object, err := w.served.Records.Get(context.Background(), w.key(name))
	if err != nil {
		return nil
	}
	return object
}

func (w *world) key(name string) v1alpha1.InstanceKey {
	return v1alpha1.InstanceKey{Export: export, Cluster: consumer, Namespace: w.namespace, Name: name}
}

func (w *world) delete(name string) {
	w.t.Helper()
	if err := w.served.Records.Delete(w.t.Context(), w.key(name)); err != nil {
		w.t.Fatal(err)
	}
}

// child is the row's object on its plane; nil if there is none.
func (w *world) child(name, id string) (*unstructured.Unstructured, v1alpha1.ComposedResource) {
	w.t.Helper()
	row, ok := w.row(name, id)
	if !ok || row.Name == "" {
		return nil, row
	}
	return w.object(row), row
}

func (w *world) object(row v1alpha1.ComposedResource) *unstructured.Unstructured {
	object, err := w.admin.Resource(row.GVR()).Namespace(row.Namespace).Get(w.t.Context(), row.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object
}

func (w *world) row(name, id string) (v1alpha1.ComposedResource, bool) {
	instance := w.get(name)
	if instance == nil {
		return v1alpha1.ComposedResource{}, false
	}
	rows, _, _ := unstructured.NestedSlice(instance.Object, "status", "composition", "resources")
	for _, row := range rows {
		fields, _ := row.(map[string]any)
		if fields["id"] == id {
			text := func(field string) string { value, _ := fields[field].(string); return value }
			return v1alpha1.ComposedResource{
				ID: id, Target: v1alpha1.Target(text("target")), APIVersion: text("apiVersion"), Kind: text("kind"),
				Resource: text("resource"), Namespace: text("namespace"), Name: text("name"), UID: types.UID(text("uid")),
				State: v1alpha1.State(text("state")), Message: text("message"), WaitingFor: text("waitingFor"),
			}, true
		}
	}
	return v1alpha1.ComposedResource{}, false
}

// become plays the controller of servers.
func (w *world) become(name, endpoint string) {
	w.t.Helper()
	_, row := w.child(name, "server")
	w.setEndpoint(row, endpoint)
}

func (w *world) setEndpoint(server v1alpha1.ComposedResource, endpoint string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"status":{"endpoint":%q}}`, endpoint)
	_, err := w.admin.Resource(servers).Namespace(server.Namespace).Patch(w.t.Context(), server.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		w.t.Fatal(err)
	}
}

func condition(instance *unstructured.Unstructured, conditionType string) string {
	if instance == nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(instance.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, _ := condition.(map[string]any); fields["type"] == conditionType {
			status, _ := fields["status"].(string)
			return status
		}
	}
	return ""
}

func endpointOf(instance *unstructured.Unstructured) string {
	if instance == nil {
		return ""
	}
	endpoint, _, _ := unstructured.NestedString(instance.Object, "status", "endpoint")
	return endpoint
}

// eventually waits far less than the resync, and the sweep's and teardown's timers are the only ones below it.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

func (w *world) update(name string, extra bool) {
	w.t.Helper()
	changed := w.get(name).DeepCopy()
	_ = unstructured.SetNestedField(changed.Object, extra, "spec", "extra")
	_, _, err := w.storage().Update(w.ctx, name, rest.DefaultUpdatedObjectInfo(changed), nil, nil, false, &metav1.UpdateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}
