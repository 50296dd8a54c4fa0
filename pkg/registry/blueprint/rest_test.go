package blueprint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/pkg/registry/instance"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

const provider = logicalcluster.Name("provider1")

var (
	home   = v1alpha1.ExportKey{Cluster: "home1", Name: "krop.opendefense.cloud"}
	export = v1alpha1.ExportKey{Cluster: provider, Name: "widgets.example.org"}
	key    = v1alpha1.InstanceKey{Export: home, Cluster: provider, Name: "widgets"}
)

const widgets = `
apiVersion: krop.opendefense.cloud/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: widgets}
spec:
  schema: {apiVersion: v1, group: example.org, kind: Widget, spec: {size: string}}
`

func TestCreateServesAndPublishesBeforeItAnswers(t *testing.T) {
	s := start(t)
	created := s.create(t, widgets)
	if s.publisher.published != 1 {
		t.Errorf("published %d times, want once", s.publisher.published)
	}
	if served, ok := s.catalog.Lookup(export); !ok || served.Program.Blueprint != "widgets" {
		t.Error("not served")
	}
	status := created.Status
	if status.ExportedAPI != export.Name || status.IdentityHash != "identity" || status.ObservedSpecHash != engine.SpecHash(created.Spec) {
		t.Errorf("%+v", status)
	}
	for condition, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionCompiled: metav1.ConditionTrue, v1alpha1.ConditionPublished: metav1.ConditionTrue,
		v1alpha1.ConditionServing: metav1.ConditionUnknown, v1alpha1.ConditionReady: metav1.ConditionTrue,
	} {
		if found := meta.FindStatusCondition(status.Conditions, condition); found == nil || found.Status != want {
			t.Errorf("%s: %+v, want %s", condition, found, want)
		}
	}
}

func TestRefusedBlueprintIsNeitherStoredNorServedNorPublished(t *testing.T) {
	for name, refuse := range map[string]func(*setup) string{
		"does not compile": func(*setup) string { return widgets + "  resources: [{id: a, template: {kind: ConfigMap}}]\n" },
		"lacks rights": func(s *setup) string {
			s.publisher.checkErr = apierrors.NewForbidden(schema.GroupResource{Resource: "apiexports"}, export.Name, errors.New("no rights"))
			return widgets
		},
		"dry run": func(s *setup) string {
			s.dryRun = []string{metav1.DryRunAll}
			return widgets
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			_, err := s.tryCreate(t, refuse(s))
			if (err == nil) != (s.dryRun != nil) {
				t.Errorf("error %v", err)
			}
			if _, err := s.main.Get(s.ctx, "widgets", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("stored: %v", err)
			}
			if _, served := s.catalog.Lookup(export); served || s.publisher.published != 0 {
				t.Error("served or published")
			}
		})
	}
}

func TestWhatCouldNotBePublishedIsStoredAndTriedAgain(t *testing.T) {
	s := start(t)
	s.publisher.err = errors.New("kcp is away")
	created := s.create(t, widgets)
	if meta.IsStatusConditionTrue(created.Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("ready although not published")
	}
	if err := s.ensure(t); err == nil {
		t.Error("nothing is left to be tried again")
	}
	s.publisher.err = nil
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	if got := s.get(t); !meta.IsStatusConditionTrue(got.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("%+v", got.Status.Conditions)
	}
}

func TestExportOfAnotherBlueprintIsRefused(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	other := object(t, widgets)
	other.SetName("others")
	if _, err := s.main.Create(s.ctx, other, nil, &metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("%v, want Conflict", err)
	}
}

func TestDeleteIsRefusedWhileInstancesExist(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	s.addInstance(t)
	if _, _, err := s.main.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("delete: %v, want Conflict", err)
	}
	if _, err := s.main.DeleteCollection(s.ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("delete of all: %v, want Conflict", err)
	}
	if s.get(t).DeletionTimestamp != nil || s.publisher.unpublished != 0 {
		t.Error("a refused deletion had an effect")
	}
	s.addInstance(t) // the gate is open again
}

func TestForcedDeleteTakesInstancesFirst(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	instances := s.addInstance(t)
	forced := s.stored(t)
	forced.SetAnnotations(map[string]string{v1alpha1.AnnotationForceDelete: "true", v1alpha1.AnnotationCluster: provider.String()})
	if _, _, err := s.main.Update(s.ctx, "widgets", rest.DefaultUpdatedObjectInfo(forced), nil, nil, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, gone, err := s.main.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil || gone {
		t.Fatalf("gone %v, %v", gone, err)
	}
	left, err := instances.List(t.Context())
	if err != nil || len(left) != 1 || left[0].GetDeletionTimestamp() == nil {
		t.Fatalf("instances are not being deleted: %v, %v", left, err)
	}
	var waiting *blueprint.InstancesLeftError
	if err := s.ensure(t); !errors.As(err, &waiting) || s.publisher.unpublished != 0 {
		t.Errorf("%v, unpublished %d times", err, s.publisher.unpublished)
	}
	if err := instances.Finalize(t.Context(), &left[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.ensure(t); err != nil || s.publisher.unpublished != 1 {
		t.Errorf("%v, unpublished %d times", err, s.publisher.unpublished)
	}
	if _, served := s.catalog.Lookup(export); served {
		t.Error("still served")
	}
}

func TestUnusedBlueprintIsGoneWhenItsDeletionIsAnswered(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	if _, gone, err := s.main.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil || !gone {
		t.Fatalf("gone %v, %v", gone, err)
	}
	if _, err := s.main.Get(s.ctx, "widgets", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want NotFound", err)
	}
	if s.publisher.unpublished != 1 || s.loop.serving[export] {
		t.Error("still published, or looked after")
	}
}

func TestBlueprintThatCannotBeLoadedIsHeldAndNotForgotten(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	s.catalog.Remove(export) // as after a restart
	s.schemasErr = errors.New("the workspace is away")
	if err := s.ensure(t); err == nil {
		t.Fatal("loaded without schemas")
	}
	if !s.catalog.Held(export) || s.catalog.Awaited() != 1 {
		t.Error("not held, or not awaited")
	}
	s.schemasErr = nil
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	if _, served := s.catalog.Lookup(export); !served {
		t.Error("not served")
	}
}

// TestBlueprintOfAnotherReplicaIsHeldUntilItIsServed would be answered with 404 otherwise, as above.
func TestBlueprintOfAnotherReplicaIsHeldUntilItIsServed(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	s.main.Expect(s.stored(t))
	if s.catalog.Held(export) {
		t.Error("what is served is held")
	}
	s.catalog.Remove(export) // as on a replica that has only just heard of it
	s.main.Expect(s.stored(t))
	if !s.catalog.Held(export) || s.catalog.Awaited() != 0 {
		t.Error("not held, or awaited")
	}
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	if _, served := s.catalog.Lookup(export); !served || s.catalog.Held(export) {
		t.Error("not served, or still held")
	}
}

// TestBlueprintWithoutStorageIsHeld would be answered with 404 otherwise, which kcp's garbage collector takes
// for proof that all owners are gone.
func TestBlueprintWithoutStorageIsHeld(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	s.catalog.Remove(export) // as after a restart
	s.storeErr = errors.New("etcd is away")
	if err := s.ensure(t); err == nil || !s.catalog.Held(export) {
		t.Errorf("%v, held %v", err, s.catalog.Held(export))
	}
}

func TestServingIsKnownWithTheFirstBinding(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	serving := func() metav1.ConditionStatus {
		return meta.FindStatusCondition(s.get(t).Status.Conditions, v1alpha1.ConditionServing).Status
	}
	if serving() != metav1.ConditionUnknown {
		t.Errorf("%s without a binding", serving())
	}
	s.routing.bound, s.routing.err = true, errors.New("kcp answers itself")
	if err := s.ensure(t); err == nil || serving() != metav1.ConditionFalse {
		t.Errorf("%v, serving %s", err, serving())
	}
	s.routing.err = nil
	if err := s.ensure(t); err != nil || serving() != metav1.ConditionTrue {
		t.Errorf("%v, serving %s", err, serving())
	}
}

func TestEditSwapsTheProgramAndUnchangedWriteKeepsTheVersion(t *testing.T) {
	s := start(t)
	s.create(t, widgets)
	before := s.stored(t)
	same, _, err := s.main.Update(s.ctx, "widgets", rest.DefaultUpdatedObjectInfo(before.DeepCopy()), nil, nil, false, &metav1.UpdateOptions{})
	if err != nil || registry.AsObject(same).GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("version %s, was %s, %v", registry.AsObject(same).GetResourceVersion(), before.GetResourceVersion(), err)
	}
	edited := before.DeepCopy()
	_ = unstructured.SetNestedField(edited.Object, "integer", "spec", "schema", "spec", "count")
	if _, _, err := s.main.Update(s.ctx, "widgets", rest.DefaultUpdatedObjectInfo(edited), nil, nil, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	served, _ := s.catalog.Lookup(export)
	if served.Program.SpecHash != engine.SpecHash(s.get(t).Spec) || s.publisher.published != 3 {
		t.Errorf("serves %s, published %d times", served.Program.SpecHash, s.publisher.published)
	}
}

// The parts that would need kcp, scripted: what they do is tested in pkg/publish on the real thing.

type publisher struct {
	checkErr, ownerErr, err error
	published, unpublished  int
	onPublish               func()
}

func (p *publisher) Check(context.Context, *engine.Program) error { return p.checkErr }

func (p *publisher) CheckOwner(context.Context, v1alpha1.ExportKey, string) error { return p.ownerErr }

func (p *publisher) Publish(context.Context, *engine.Program, []v1alpha1.PermissionClaim) (string, error) {
	p.published++
	if p.onPublish != nil {
		p.onPublish()
	}
	return "identity", p.err
}

func (p *publisher) Unpublish(context.Context, v1alpha1.ExportKey, string) error {
	p.unpublished++
	return nil
}

type loop struct {
	serving map[v1alpha1.ExportKey]bool
	again   int
	err     error
}

func (l *loop) Serve(export v1alpha1.ExportKey, _ *engine.Program, _ *registry.Records) error {
	l.serving[export] = true
	return l.err
}
func (l *loop) Stop(export v1alpha1.ExportKey) { delete(l.serving, export) }
func (l *loop) Again(v1alpha1.ExportKey)       { l.again++ }

type routing struct {
	bound bool
	err   error
}

func (r *routing) Routed(context.Context, v1alpha1.ExportKey, schema.GroupVersionResource) (bool, error) {
	return r.bound, r.err
}

// childless composes instances that have no children.
type childless struct{}

func (childless) Preflight(_ context.Context, request compose.Request) (*compose.Result, error) {
	object := request.Instance.DeepCopy()
	object.SetFinalizers([]string{v1alpha1.Finalizer})
	return &compose.Result{Instance: object}, nil
}

func (childless) Apply(_ context.Context, request compose.Request, _ compose.Intent) (*compose.Result, error) {
	return &compose.Result{Instance: request.Instance}, nil
}

type anyNamespace struct{}

func (anyNamespace) Check(context.Context, v1alpha1.ExportKey, logicalcluster.Name, string) error {
	return nil
}
func (anyNamespace) Forget(v1alpha1.ExportKey, logicalcluster.Name, string) {}

// configMaps is a plane that has nothing else.
type configMaps struct{}

func (configMaps) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	if gvk != (schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		return kro.Kind{}, &kro.KindNotFoundError{Target: target, GVK: gvk}
	}
	text := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}
	object := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: map[string]spec.Schema{
		"apiVersion": text, "kind": text,
		"metadata": {SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: map[string]spec.Schema{"name": text}}},
		"data": {SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"},
			AdditionalProperties: &spec.SchemaOrBool{Allows: true, Schema: &text}}},
	}}}
	return kro.Kind{GVR: gvk.GroupVersion().WithResource("configmaps"), Namespaced: true, Schema: object}, nil
}

type setup struct {
	ctx        context.Context
	main       *blueprint.REST
	catalog    *registry.Catalog
	publisher  *publisher
	loop       *loop
	routing    *routing
	kinds      *kinds
	holders    holders
	rights     rights
	values     *values
	renew      func() // what was in memory is lost
	schemasErr error
	storeErr   error
	claimed    []v1alpha1.PermissionClaim
	claimErrs  func(at func(v1alpha1.NodeID) *field.Path) field.ErrorList
	origins    func(context.Context, *engine.Program) (map[v1alpha1.NodeID]v1alpha1.ExportKey, error)
	dryRun     []string
}

func start(t *testing.T) *setup {
	t.Helper()
	server, err := etcd.Start(t.Context(), etcd.EmbeddedConfig{DataDir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	backend, err := etcd.Connect(t.Context(), etcd.BackendConfig{Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	s := &setup{
		ctx:     genericapirequest.WithNamespace(etcd.WithCluster(t.Context(), provider), ""),
		catalog: &registry.Catalog{}, publisher: &publisher{}, loop: &loop{serving: map[v1alpha1.ExportKey]bool{}}, routing: &routing{}, kinds: &kinds{},
	}
	newStore := func(k *kind.Kind, export v1alpha1.ExportKey) (*kind.Store, error) {
		if s.storeErr != nil {
			return nil, s.storeErr
		}
		return kind.NewStore(k, kind.StoreOptions{
			Backend: backend, ExportCluster: export.Cluster, Allowed: []string{v1alpha1.AnnotationForceDelete},
		})
	}
	s.values = &values{Values: backend.Values("compiled-against")}
	s.main = s.newMain(t, newStore)
	s.renew = func() {
		s.catalog.Remove(export)
		s.main = s.newMain(t, newStore)
	}
	return s
}

func (s *setup) newMain(t *testing.T, newStore func(*kind.Kind, v1alpha1.ExportKey) (*kind.Store, error)) *blueprint.REST {
	t.Helper()
	definition, err := manifests.Blueprint()
	if err != nil {
		t.Fatal(err)
	}
	of, err := kind.New(definition)
	if err != nil {
		t.Fatal(err)
	}
	store, err := newStore(of, home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	locks := &registry.Locks{}
	builder := &instance.Builder{NewStore: newStore, Composer: childless{}, Namespaces: anyNamespace{}, Locks: locks, Timeout: time.Minute}
	return blueprint.NewREST(blueprint.Config{
		Kind: of, Store: store, Export: home, Locks: locks, Routing: s.routing, Changes: s.kinds, Values: s.values,
		Compiler: &blueprint.Compiler{
			Schemas: func(context.Context, logicalcluster.Name) (blueprint.Schemas, error) {
				return s.kinds.look(), s.schemasErr
			},
			Claims: func(_ context.Context, _ *engine.Program, at func(v1alpha1.NodeID) *field.Path) ([]v1alpha1.PermissionClaim, field.ErrorList, error) {
				if s.claimErrs != nil {
					return nil, s.claimErrs(at), nil
				}
				return s.claimed, nil, nil
			},
			Origins: func(ctx context.Context, program *engine.Program) (map[v1alpha1.NodeID]v1alpha1.ExportKey, error) {
				if s.origins != nil {
					return s.origins(ctx, program)
				}
				return nil, nil
			},
		},
		Offering: &blueprint.Offering{Catalog: s.catalog, Storage: builder, Publisher: s.publisher, Rights: &s.rights, Loop: s.loop, Consumers: &s.holders},
	})
}

func (s *setup) tryCreate(t *testing.T, text string) (*v1alpha1.ResourceGraphDefinition, error) {
	t.Helper()
	created, err := s.main.Create(s.ctx, object(t, text), nil, &metav1.CreateOptions{DryRun: s.dryRun})
	if err != nil {
		return nil, err
	}
	return typed(t, registry.AsObject(created)), nil
}

func (s *setup) create(t *testing.T, text string) *v1alpha1.ResourceGraphDefinition {
	t.Helper()
	created, err := s.tryCreate(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (s *setup) ensure(t *testing.T) error {
	t.Helper()
	_, err := s.main.Ensure(t.Context(), key)
	return err
}

func (s *setup) stored(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	stored, err := s.main.Records().Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func (s *setup) get(t *testing.T) *v1alpha1.ResourceGraphDefinition {
	t.Helper()
	return typed(t, s.stored(t))
}

// addInstance creates one more instance, and returns the records of all.
func (s *setup) addInstance(t *testing.T) *registry.Records {
	t.Helper()
	served, ok := s.catalog.Lookup(export)
	if !ok {
		t.Fatal("not served")
	}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"generateName": "widget-", "namespace": "default"},
	}}
	ctx := genericapirequest.WithNamespace(etcd.WithCluster(t.Context(), "consumer1"), "default")
	if _, err := served.Storage["widgets"].(rest.Creater).Create(ctx, widget, nil, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return served.Records
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func typed(t *testing.T, in *unstructured.Unstructured) *v1alpha1.ResourceGraphDefinition {
	t.Helper()
	out := &v1alpha1.ResourceGraphDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, out); err != nil {
		t.Fatal(err)
	}
	return out
}
