package gc

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

var (
	testExport   = v1alpha1.ExportKey{Cluster: "provider", Name: "things.example.org"}
	testResource = schema.GroupResource{Group: "example.org", Resource: "things"}
	testGVR      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

func testProgram(specHash string, nodes ...engine.Node) *engine.Program {
	return &engine.Program{Blueprint: "things", Export: testExport, SpecHash: specHash, Nodes: nodes}
}

func testKey(cluster, name string) v1alpha1.InstanceKey {
	return v1alpha1.InstanceKey{Export: testExport, Cluster: logicalcluster.Name(cluster), Namespace: "default", Name: name}
}

// memory is Instances without etcd, for tests that force what etcd wouldn't do.
type memory struct {
	mutex    sync.Mutex
	revision int
	objects  map[v1alpha1.InstanceKey]*unstructured.Unstructured
	watchers []chan watch.Event
	locked   map[v1alpha1.InstanceKey]chan struct{}
	failUIDs error
	// label is what every write puts on; "" for nothing.
	label string
	reads int // of UIDs
	// granted and refused count what became of attempts to lock.
	granted, refused int
}

var _ Instances = &memory{}

func newMemory() *memory {
	return &memory{objects: map[v1alpha1.InstanceKey]*unstructured.Unstructured{}, locked: map[v1alpha1.InstanceKey]chan struct{}{}}
}

func (m *memory) keyOf(instance *unstructured.Unstructured) v1alpha1.InstanceKey {
	return testKey(logicalcluster.From(instance).String(), instance.GetName())
}

func (m *memory) put(instance *unstructured.Unstructured) *unstructured.Unstructured {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	key := m.keyOf(instance)
	event := watch.Modified
	if m.objects[key] == nil {
		event = watch.Added
	}
	return m.write(key, event, instance)
}

// write stores and tells; the mutex is held.
func (m *memory) write(key v1alpha1.InstanceKey, event watch.EventType, instance *unstructured.Unstructured) *unstructured.Unstructured {
	m.revision++
	instance = instance.DeepCopy()
	if m.label != "" {
		instance.SetLabels(map[string]string{"claimed": m.label})
	}
	instance.SetResourceVersion(strconv.Itoa(m.revision))
	m.objects[key] = instance
	if event == watch.Deleted {
		delete(m.objects, key)
	}
	for _, watcher := range m.watchers {
		watcher <- watch.Event{Type: event, Object: instance.DeepCopy()}
	}
	return instance.DeepCopy()
}

// remove deletes by force, whatever finalizers there are.
func (m *memory) remove(key v1alpha1.InstanceKey) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.write(key, watch.Deleted, m.objects[key])
}

func (m *memory) Get(_ context.Context, key v1alpha1.InstanceKey) (*unstructured.Unstructured, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if object, ok := m.objects[key]; ok {
		return object.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(testResource, key.Name)
}

func (m *memory) UIDs(_ context.Context, cluster logicalcluster.Name) (sets.Set[types.UID], error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.reads++
	if m.failUIDs != nil {
		return nil, m.failUIDs
	}
	uids := sets.New[types.UID]()
	for key, object := range m.objects {
		if key.Cluster == cluster {
			uids.Insert(object.GetUID())
		}
	}
	return uids, nil
}

func (m *memory) Watch(ctx context.Context, handle func(watch.EventType, *unstructured.Unstructured)) error {
	m.mutex.Lock()
	events := make(chan watch.Event, 10000)
	m.watchers = append(m.watchers, events)
	var listed []*unstructured.Unstructured
	for _, object := range m.objects {
		listed = append(listed, object.DeepCopy())
	}
	m.mutex.Unlock()
	for _, object := range listed {
		handle(watch.Added, object)
	}
	handle(watch.Bookmark, nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-events:
			handle(event.Type, event.Object.(*unstructured.Unstructured))
		}
	}
}

func (m *memory) Record(_ context.Context, instance *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	key := m.keyOf(instance)
	current, ok := m.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(testResource, key.Name)
	}
	if current.GetResourceVersion() != instance.GetResourceVersion() {
		return nil, apierrors.NewConflict(testResource, key.Name, nil)
	}
	return m.write(key, watch.Modified, instance), nil
}

func (m *memory) Delete(_ context.Context, key v1alpha1.InstanceKey) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	current, ok := m.objects[key]
	if !ok {
		return apierrors.NewNotFound(testResource, key.Name)
	}
	current = current.DeepCopy()
	now := metav1.Now()
	current.SetDeletionTimestamp(&now)
	m.write(key, watch.Modified, current)
	return nil
}

func (m *memory) DeleteExactly(ctx context.Context, key v1alpha1.InstanceKey, uid types.UID) error {
	current, err := m.Get(ctx, key)
	if err == nil && current.GetUID() != uid {
		return apierrors.NewConflict(testResource, key.Name, nil)
	}
	return m.Delete(ctx, key)
}

func (m *memory) Finalize(_ context.Context, instance *unstructured.Unstructured) error {
	m.remove(m.keyOf(instance))
	return nil
}

// claim says what every write puts on from now on.
func (m *memory) claim(label string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.label = label
}

func (m *memory) Labelled(_ context.Context, key v1alpha1.InstanceKey) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	object, ok := m.objects[key]
	return !ok || object.GetLabels()["claimed"] == m.label, nil
}

func (m *memory) Relabel(_ context.Context, key v1alpha1.InstanceKey) (before, after *unstructured.Unstructured, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	before, ok := m.objects[key]
	if !ok {
		return nil, nil, nil
	}
	return before.DeepCopy(), m.write(key, watch.Modified, before), nil
}

func (m *memory) Lock(ctx context.Context, key v1alpha1.InstanceKey) (func(), error) {
	m.mutex.Lock()
	lock, ok := m.locked[key]
	if !ok {
		lock = make(chan struct{}, 1)
		m.locked[key] = lock
	}
	m.mutex.Unlock()
	select {
	case lock <- struct{}{}:
		m.count(&m.granted)
		return func() { <-lock }, nil
	case <-ctx.Done():
		m.count(&m.refused)
		return nil, ctx.Err()
	}
}

func (m *memory) count(what *int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	*what++
}

func (m *memory) counted(what *int) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return *what
}

// instance is one as a request would have stored it.
func instance(cluster, name, uid string, rows ...v1alpha1.ComposedResource) *unstructured.Unstructured {
	object := stored(cluster, name, uid)
	object.SetFinalizers([]string{v1alpha1.Finalizer})
	list := make([]any, 0, len(rows))
	for _, row := range rows {
		list = append(list, map[string]any{
			"id": row.ID, "target": string(row.Target), "apiVersion": row.APIVersion, "kind": row.Kind,
			"resource": row.Resource, "namespace": row.Namespace, "name": row.Name, "uid": string(row.UID), "state": "Ready",
			"deletionPolicy": string(row.DeletionPolicy),
		})
	}
	_ = unstructured.SetNestedSlice(object.Object, list, "status", "composition", "resources")
	return object
}

// composer is a Composer that does what a test says.
type composer struct {
	mutex    sync.Mutex
	apply    func(compose.Request) (*compose.Result, error)
	teardown func(context.Context, compose.Request, compose.Intent) (bool, *compose.Result, error)
	applied  []string // spec hash and instance, in order
}

func (c *composer) Apply(_ context.Context, request compose.Request, _ compose.Intent) (*compose.Result, error) {
	c.mutex.Lock()
	c.applied = append(c.applied, request.Program.SpecHash+" "+request.Instance.GetName())
	apply := c.apply
	c.mutex.Unlock()
	if apply != nil {
		return apply(request)
	}
	return &compose.Result{Instance: request.Instance, Plan: &engine.Plan{}}, nil
}

func (c *composer) Prune(_ context.Context, request compose.Request, plan *engine.Plan, _ compose.Intent) (*compose.Result, error) {
	return &compose.Result{Instance: request.Instance, Plan: plan}, nil
}

func (c *composer) Teardown(ctx context.Context, request compose.Request, intent compose.Intent) (bool, *compose.Result, error) {
	if c.teardown != nil {
		return c.teardown(ctx, request, intent)
	}
	return true, &compose.Result{Instance: request.Instance}, nil
}

func (c *composer) passes() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]string(nil), c.applied...)
}

func (c *composer) count(of string) int {
	n := 0
	for _, pass := range c.passes() {
		if pass == of {
			n++
		}
	}
	return n
}

// sources hands events of children out by source.
type sources struct {
	mutex  sync.Mutex
	open   map[source]func(watch.EventType, *unstructured.Unstructured)
	starts map[source]int
	ends   map[source]int
}

func newSources() *sources {
	return &sources{open: map[source]func(watch.EventType, *unstructured.Unstructured){}, starts: map[source]int{}, ends: map[source]int{}}
}

func (s *sources) Watch(ctx context.Context, target v1alpha1.Target, _ v1alpha1.ExportKey, _ string, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error {
	of := source{target, gvr}
	s.mutex.Lock()
	s.open[of] = handle
	s.starts[of]++
	start := s.starts[of]
	s.mutex.Unlock()
	<-ctx.Done()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.starts[of] == start {
		delete(s.open, of)
	}
	s.ends[of]++
	return nil
}

// WatchAll is like Watch, of the source's outside.
func (s *sources) WatchAll(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, gvr schema.GroupVersionResource, handle func(watch.EventType, *unstructured.Unstructured)) error {
	return s.Watch(ctx, outside(target), export, "", gvr, handle)
}

// outside is the target under which a test finds the watch of all objects of a source.
func outside(target v1alpha1.Target) v1alpha1.Target { return "all of " + target }

func (s *sources) started(of source) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.starts[of]
}

func (s *sources) ended(of source) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ends[of]
}

func (s *sources) isOpen(of source) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.open[of] != nil
}

func (s *sources) tell(of source, event watch.EventType, child *unstructured.Unstructured) {
	s.mutex.Lock()
	handle := s.open[of]
	s.mutex.Unlock()
	handle(event, child)
}

// notServed is what an API server answers where it has no such resource.
var notServed = apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)

// shared is a provider's or host plane with objects in memory.
type shared struct {
	plane.Plane
	mutex   sync.Mutex
	objects map[plane.Object]*unstructured.Unstructured
	deleted []string
	fail    error
	serves  []string // versions
}

func (s *shared) For(context.Context, v1alpha1.Target, v1alpha1.ExportKey, logicalcluster.Name) (plane.Plane, error) {
	return s, nil
}

func (s *shared) Get(_ context.Context, object plane.Object) (*unstructured.Unstructured, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	if len(s.serves) > 0 && !slices.Contains(s.serves, object.GVR.Version) {
		return nil, notServed
	}
	if live, ok := s.objects[object]; ok {
		return live.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(object.GVR.GroupResource(), object.Name)
}

func (s *shared) Versions(context.Context, schema.GroupResource) ([]string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.serves, nil
}

func (s *shared) Delete(_ context.Context, object plane.Object, uid types.UID) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if live := s.objects[object]; live == nil || live.GetUID() != uid {
		return apierrors.NewConflict(object.GVR.GroupResource(), object.Name, nil)
	}
	delete(s.objects, object)
	s.deleted = append(s.deleted, object.Name)
	return nil
}

func (s *shared) wasDeleted() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.deleted)
}

func (s *shared) has(name string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for object := range s.objects {
		if object.Name == name {
			return true
		}
	}
	return false
}

// bindings is what is known of bindings.
type bindings struct {
	mutex   sync.Mutex
	changed func(v1alpha1.ExportKey, logicalcluster.Name, bool)
	bound   sets.Set[logicalcluster.Name]
	unknown bool // nothing can be known
	reads   int
}

func (b *bindings) Subscribe(changed func(v1alpha1.ExportKey, logicalcluster.Name, bool)) {
	b.changed = changed
}

func (b *bindings) Holders(context.Context, v1alpha1.ExportKey) (holders sets.Set[logicalcluster.Name], known bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.reads++
	if b.unknown {
		return nil, false
	}
	return b.bound.Clone(), true
}

func (b *bindings) set(cluster logicalcluster.Name, bound bool) {
	b.mutex.Lock()
	b.unknown = false
	b.bound.Delete(cluster)
	if bound {
		b.bound.Insert(cluster)
	}
	b.mutex.Unlock()
	b.changed(testExport, cluster, bound)
}

func (b *bindings) asked() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.reads
}

// known says that from now on the bindings are certainly those that are set.
func (b *bindings) known() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.unknown = false
}

func run(t *testing.T, l *Loop) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}
