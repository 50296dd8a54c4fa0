package instance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kcp-dev/logicalcluster/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/pkg/registry/instance"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

const (
	consumer  = logicalcluster.Name("consumer1")
	namespace = "default"
)

func TestCreateStoresWhatPreflightFoundAndAnswersWithWhatWasApplied(t *testing.T) {
	s := start(t)
	created, err := s.main.Create(s.ctx, widget("one"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.composer.storedAtApply; state(got) != "preflighted" || !hasFinalizer(got) {
		t.Errorf("when children are written, the stored instance has state %q and finalizers %v", state(got), got.GetFinalizers())
	}
	if state(created) != "applied" {
		t.Errorf("the answer has state %q, want that of the last apply", state(created))
	}
	if stored := s.get(t, "one"); state(stored) != "applied" || stored.GetResourceVersion() != registry.AsObject(created).GetResourceVersion() {
		t.Errorf("stored %q at %s, answered at %s", state(stored), stored.GetResourceVersion(), registry.AsObject(created).GetResourceVersion())
	}
}

func TestRefusedWriteStoresNothing(t *testing.T) {
	s := start(t)
	s.composer.refuse = apierrors.NewForbidden(s.main.DefaultQualifiedResource, "child", errors.New("claim not accepted"))
	if _, err := s.main.Create(s.ctx, widget("one"), nil, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create: %v, want the composer's Forbidden", err)
	}
	s.wantAbsent(t, "one")

	s.composer.refuse = nil
	before := s.create(t, "two")
	s.composer.refuse = apierrors.NewConflict(s.main.DefaultQualifiedResource, "child", errors.New("not ours"))
	if _, err := s.update(before, "spec", "large"); !apierrors.IsConflict(err) {
		t.Errorf("update: %v, want the composer's Conflict", err)
	}
	if diff := cmp.Diff(before, s.get(t, "two")); diff != "" {
		t.Errorf("a refused update changed what is stored:\n%s", diff)
	}
}

func TestInvalidObjectsAreRefusedBeforeComposing(t *testing.T) {
	s := start(t)
	invalid := widget("one")
	_ = unstructured.SetNestedField(invalid.Object, int64(7), "spec", "size")
	if _, err := s.main.Create(s.ctx, invalid, nil, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("create: %v, want Invalid", err)
	}
	if s.composer.preflights != 0 {
		t.Errorf("composed %d times, want never", s.composer.preflights)
	}
}

func TestDryRunComposesAndStoresNothing(t *testing.T) {
	s := start(t)
	options := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	answer, err := s.main.Create(s.ctx, widget("one"), nil, options)
	if err != nil {
		t.Fatal(err)
	}
	if state(answer) != "preflighted" {
		t.Errorf("answer has state %q, want what preflight found", state(answer))
	}
	if s.composer.applies != 0 {
		t.Error("a dry run wrote children")
	}
	s.wantAbsent(t, "one")
}

func TestCreateOfWhatExistsComposesNothing(t *testing.T) {
	s := start(t)
	s.create(t, "one")
	s.waitCached(t, "one")
	before := s.composer.preflights
	if _, err := s.main.Create(s.ctx, widget("one"), nil, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("%v, want AlreadyExists", err)
	}
	if s.composer.preflights != before {
		t.Error("preflight ran for a create that can't succeed")
	}
}

func TestGeneratedNamesAreComposedUnderTheirName(t *testing.T) {
	s := start(t)
	object := widget("")
	object.SetGenerateName("gen-")
	created, err := s.main.Create(s.ctx, object, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := registry.AsObject(created).GetName()
	if name == "" || s.composer.lastName != name {
		t.Errorf("composed as %q, stored as %q", s.composer.lastName, name)
	}
}

func TestWriteThatChangesNothingKeepsItsVersion(t *testing.T) {
	s := start(t)
	s.composer.steady = true
	before := s.create(t, "one")
	after, err := s.update(before, "spec", "small")
	if err != nil {
		t.Fatal(err)
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("version went from %s to %s", before.GetResourceVersion(), after.GetResourceVersion())
	}
}

func TestUsersCannotWriteStatus(t *testing.T) {
	s := start(t)
	before := s.create(t, "one")
	changed := before.DeepCopy()
	_ = unstructured.SetNestedField(changed.Object, "forged", "status", "state")
	s.composer.steady = true
	if _, err := s.put(changed); err != nil {
		t.Fatal(err)
	}
	if got := state(s.get(t, "one")); got == "forged" {
		t.Error("a user's status was stored")
	}
	if _, ok := any(registry.NewStatusREST(s.main)).(rest.Updater); ok {
		t.Error("the status subresource can be written")
	}
}

func TestAnswerIsWhatIsStoredWhenSomebodyElseWroteMeanwhile(t *testing.T) {
	s := start(t)
	s.composer.failApply = apierrors.NewConflict(s.main.DefaultQualifiedResource, "one", errors.New("newer intent"))
	created, err := s.main.Create(s.ctx, widget("one"), nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.get(t, "one"), registry.AsObject(created)); diff != "" {
		t.Errorf("answer differs from what is stored:\n%s", diff)
	}
}

func TestDeleteIsHeldUntilFinalized(t *testing.T) {
	s := start(t)
	s.create(t, "one")
	if _, _, err := s.main.Delete(s.ctx, "one", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deleting := s.get(t, "one")
	if deleting.GetDeletionTimestamp() == nil {
		t.Fatal("not marked for deletion")
	}
	if err := s.main.Records().Finalize(t.Context(), deleting); err != nil {
		t.Fatal(err)
	}
	s.wantAbsent(t, "one")
}

func TestOrphaningDeletionIsRecordedOnTheInstance(t *testing.T) {
	s := start(t)
	s.create(t, "one")
	orphan := &metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan), Preconditions: metav1.NewUIDPreconditions("another")}
	if _, _, err := s.main.Delete(s.ctx, "one", rest.ValidateAllObjectFunc, orphan); !apierrors.IsConflict(err) {
		t.Errorf("deletion of another instance: %v, want Conflict", err)
	}
	if s.get(t, "one").GetAnnotations()[v1alpha1.AnnotationOrphanChildren] != "" {
		t.Error("a refused deletion left its mark")
	}
	orphan.Preconditions = nil
	if _, err := s.main.DeleteCollection(s.ctx, rest.ValidateAllObjectFunc, orphan, &metainternalversion.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	deleting := s.get(t, "one")
	if deleting.GetDeletionTimestamp() == nil || deleting.GetAnnotations()[v1alpha1.AnnotationOrphanChildren] == "" {
		t.Errorf("deletion %v, annotations %v", deleting.GetDeletionTimestamp(), deleting.GetAnnotations())
	}
}

func TestStaleRecordLosesAndUnchangedRecordWritesNothing(t *testing.T) {
	s := start(t)
	stale := s.create(t, "one")
	records := s.main.Records()
	same, err := records.Record(t.Context(), stale)
	if err != nil || same.GetResourceVersion() != stale.GetResourceVersion() {
		t.Errorf("unchanged record: version %s, %v", same.GetResourceVersion(), err)
	}
	newer := stale.DeepCopy()
	_ = unstructured.SetNestedField(newer.Object, "newer", "status", "state")
	if _, err := records.Record(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(stale.Object, "older", "status", "state")
	if _, err := records.Record(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("stale record: %v, want Conflict", err)
	}
}

func TestDeleteCollectionMarksEach(t *testing.T) {
	s := start(t)
	s.create(t, "one")
	s.create(t, "two")
	if _, err := s.main.DeleteCollection(s.ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if s.get(t, name).GetDeletionTimestamp() == nil {
			t.Errorf("%s is not marked for deletion", name)
		}
	}
}

// scripted composes nothing: it forces outcomes and records what it is asked.
type scripted struct {
	refuse, failApply   error
	steady              bool
	preflights, applies int
	lastName            string
	storedAtApply       *unstructured.Unstructured
	preflightDeadlines  []time.Time
	applyDeadline       time.Time
	meanwhile           func() // happens once, between preflight and storing
	main                *instance.REST
}

func (c *scripted) Preflight(ctx context.Context, request compose.Request) (*compose.Result, error) {
	c.preflights++
	deadline, _ := ctx.Deadline()
	c.preflightDeadlines = append(c.preflightDeadlines, deadline)
	if meanwhile := c.meanwhile; meanwhile != nil {
		c.meanwhile = nil
		meanwhile()
	}
	c.lastName = request.Instance.GetName()
	if c.refuse != nil {
		return nil, c.refuse
	}
	object := request.Instance.DeepCopy()
	object.SetFinalizers([]string{v1alpha1.Finalizer})
	_ = unstructured.SetNestedField(object.Object, c.word("preflighted"), "status", "state")
	return &compose.Result{Instance: object}, nil
}

func (c *scripted) Apply(ctx context.Context, request compose.Request, intent compose.Intent) (*compose.Result, error) {
	c.applies++
	c.applyDeadline, _ = ctx.Deadline()
	if c.failApply != nil {
		return nil, c.failApply
	}
	stored, err := c.main.Records().Get(ctx, registry.KeyOf(export, request.Instance))
	if err != nil {
		return nil, err
	}
	c.storedAtApply = stored
	object := request.Instance.DeepCopy()
	_ = unstructured.SetNestedField(object.Object, c.word("applied"), "status", "state")
	recorded, err := intent.Record(ctx, object)
	return &compose.Result{Instance: recorded}, err
}

func (c *scripted) word(word string) string {
	if c.steady {
		return "steady"
	}
	return word
}

type anyNamespace struct{}

func (anyNamespace) Forget(v1alpha1.ExportKey, logicalcluster.Name, string) {}

func (anyNamespace) Check(context.Context, v1alpha1.ExportKey, logicalcluster.Name, string) error {
	return nil
}

var export = v1alpha1.ExportKey{Cluster: "provider1", Name: "widgets.example.org"}

type setup struct {
	ctx      context.Context
	main     *instance.REST
	composer *scripted
}

func start(t testing.TB) *setup {
	t.Helper()
	return startWith(t, time.Minute)
}

// startWith is start with another time for each write.
func startWith(t testing.TB, timeout time.Duration) *setup {
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
	composer := &scripted{}
	builder := &instance.Builder{
		NewStore: func(k *kind.Kind, export v1alpha1.ExportKey) (*kind.Store, error) {
			return kind.NewStore(k, kind.StoreOptions{Backend: backend, ExportCluster: export.Cluster})
		},
		Composer: composer, Namespaces: anyNamespace{}, Locks: &registry.Locks{}, Timeout: timeout,
	}
	served, err := builder.Build(t.Context(), &engine.Program{Blueprint: "widgets", Export: export, CRD: definition()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(served.Records.Destroy)
	composer.main = served.Storage["widgets"].(*instance.REST)
	ctx := genericapirequest.WithNamespace(etcd.WithCluster(t.Context(), consumer), namespace)
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{APIGroup: "example.org", APIVersion: "v1", Resource: "widgets"})
	return &setup{ctx: ctx, main: composer.main, composer: composer}
}

func (s *setup) create(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	created, err := s.main.Create(s.ctx, widget(name), nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return registry.AsObject(created)
}

func (s *setup) get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := s.main.Get(s.ctx, name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return registry.AsObject(object)
}

// waitCached waits until the watch cache has the instance.
func (s *setup) waitCached(t *testing.T, name string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(s.ctx, 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.main.Store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s never came into the cache: %v", name, err)
	}
}

func (s *setup) wantAbsent(t *testing.T, name string) {
	t.Helper()
	if _, err := s.main.Get(s.ctx, name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of %s: %v, want NotFound", name, err)
	}
}

func (s *setup) update(object *unstructured.Unstructured, field, size string) (*unstructured.Unstructured, error) {
	changed := object.DeepCopy()
	_ = unstructured.SetNestedField(changed.Object, size, field, "size")
	return s.put(changed)
}

func (s *setup) put(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	updated, _, err := s.main.Update(s.ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(object), nil, nil, false, &metav1.UpdateOptions{})
	return registry.AsObject(updated), err
}

func state(object runtime.Object) string {
	state, _, _ := unstructured.NestedString(registry.AsObject(object).Object, "status", "state")
	return state
}

func hasFinalizer(object *unstructured.Unstructured) bool {
	return len(object.GetFinalizers()) == 1 && object.GetFinalizers()[0] == v1alpha1.Finalizer
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       map[string]any{"size": "small"},
	}}
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	part := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	schema := part(map[string]apiextensionsv1.JSONSchemaProps{
		"spec":   part(map[string]apiextensionsv1.JSONSchemaProps{"size": text}),
		"status": part(map[string]apiextensionsv1.JSONSchemaProps{"state": text}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: ptr.To(schema)},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

func TestWatchHandsOutWhatIsStoredThenEveryChange(t *testing.T) {
	s := start(t)
	s.create(t, "one")
	events := make(chan string, 16)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- s.main.Records().Watch(ctx, func(event watch.EventType, object *unstructured.Unstructured) {
			if object == nil {
				events <- string(event)
				return
			}
			deleting := ""
			if object.GetDeletionTimestamp() != nil {
				deleting = " deleting"
			}
			events <- string(event) + " " + object.GetName() + deleting
		})
	}()
	wantEvent(t, events, "ADDED one")
	wantEvent(t, events, "BOOKMARK")
	if _, _, err := s.main.Delete(s.ctx, "one", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, "MODIFIED one deleting")
	if err := s.main.Records().Finalize(t.Context(), s.get(t, "one")); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, "DELETED one deleting")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestACutOfTheWatchIsTold(t *testing.T) {
	s := start(t)
	events := make(chan string, 16)
	go func() {
		_ = s.main.Records().Watch(t.Context(), func(event watch.EventType, _ *unstructured.Unstructured) { events <- string(event) })
	}()
	wantEvent(t, events, "BOOKMARK")
	s.main.Destroy()
	wantEvent(t, events, "ERROR")
}

func wantEvent(t *testing.T, events <-chan string, want string) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("event %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no event, want %q", want)
	}
}
