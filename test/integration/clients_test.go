package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// events counts what an informer tells of each object.
type events struct {
	mu   sync.Mutex
	seen map[string]int
}

func (e *events) count(kind string, object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[kind+" "+object.(*unstructured.Unstructured).GetName()]++
}

func (e *events) saw(kind, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[kind+" "+name] == 0 {
		return fmt.Errorf("no event: %s %s", kind, name)
	}
	return nil
}

func TestInformerOfClientGoWorksUnmodified(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "informs")
	consumer.create(bundle("before", nil))

	factory := dynamicinformer.NewDynamicSharedInformerFactory(consumer.Interface, 0)
	informer := factory.ForResource(bundles).Informer()
	seen := &events{seen: map[string]int{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen.count("added", object) },
		UpdateFunc: func(_, object any) { seen.count("updated", object) },
		DeleteFunc: func(object any) { seen.count("deleted", object) },
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	must(t, seen.saw("added", "before"))

	consumer.create(bundle("after", nil))
	eventually(t, "a new object is told of", func() error { return seen.saw("added", "after") })
	consumer.patch(bundles, "after", `{"spec":{"text":"changed"}}`)
	eventually(t, "a change is told of", func() error { return seen.saw("updated", "after") })
	consumer.delete(bundles, "before")
	eventually(t, "a deletion is told of", func() error { return seen.saw("deleted", "before") })
}

func TestWatchGoesOnFromAResourceVersion(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "watches")
	list, err := consumer.in(bundles).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	consumer.create(bundle("missed", nil))
	watcher, err := consumer.in(bundles).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true,
	})
	must(t, err)
	defer watcher.Stop()
	select {
	case event := <-watcher.ResultChan():
		object, ok := event.Object.(*unstructured.Unstructured)
		if event.Type != watch.Added || !ok || object.GetName() != "missed" {
			t.Errorf("the first event is %s %v", event.Type, event.Object)
		}
	case <-time.After(eventTimeout):
		t.Error("what happened before the watch is not told")
	}
}

func TestListComesInPages(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "pages")
	for i := range 5 {
		consumer.create(bundle(fmt.Sprintf("b%d", i), nil))
	}
	found := 0
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		page, err := consumer.in(bundles).List(t.Context(), metav1.ListOptions{Limit: 2, Continue: next})
		must(t, err)
		if len(page.Items) > 2 {
			t.Fatalf("a page has %d objects, want 2 at most", len(page.Items))
		}
		found, next = found+len(page.Items), page.GetContinue()
	}
	if found != 5 {
		t.Errorf("pages have %d objects, want 5", found)
	}
}

func TestMetadataClientSeesInstances(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "metadata")
	created := consumer.create(bundle("meta", nil))
	config, err := bed.Config(consumer.user)
	must(t, err)
	client, err := metadata.NewForConfig(config)
	must(t, err)
	object, err := client.Resource(bundles).Namespace(namespace).Get(t.Context(), "meta", metav1.GetOptions{})
	must(t, err)
	if object.UID != created.GetUID() {
		t.Errorf("uid %s, want %s", object.UID, created.GetUID())
	}
}

func TestStaleUpdateConflicts(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "stale")
	created := consumer.create(bundle("stale", nil))
	consumer.patch(bundles, "stale", `{"spec":{"text":"newer"}}`)
	must(t, unstructured.SetNestedField(created.Object, "older", "spec", "text"))
	_, err := consumer.in(bundles).Update(t.Context(), created, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Fatalf("the answer is %v, want 409", err)
	}
	must(t, consumer.has(configMaps, "stale", "newer", "data", "text"))
}

func TestUsersCannotWriteStatusOrForgeMarks(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "forges")
	consumer.create(bundle("honest", nil))
	_, err := consumer.in(bundles).Patch(t.Context(), "honest", types.MergePatchType,
		[]byte(`{"status":{"text":"forged"}}`), metav1.PatchOptions{}, "status")
	if err == nil {
		t.Error("status could be written")
	}
	patched := consumer.patch(bundles, "honest", `{"status":{"text":"forged"},"metadata":{"annotations":{"kcp.io/cluster":"elsewhere"}}}`)
	if got := patched.GetAnnotations()["kcp.io/cluster"]; got != consumer.cluster() {
		t.Errorf("kcp.io/cluster is %q, want %q", got, consumer.cluster())
	}
	must(t, fieldIs(patched, "hello", "status", "text"))
}

func TestUnknownFieldsAreRefusedWhenAskedFor(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "strict")
	odd := bundle("odd", map[string]any{"txet": "x"})
	_, err := consumer.in(bundles).Create(t.Context(), odd, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsBadRequest(err) {
		t.Fatalf("the answer is %v, want 400 for an unknown field", err)
	}
	_, err = consumer.in(bundles).Create(t.Context(), odd, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	must(t, err)
	must(t, consumer.has(bundles, "odd", nil, "spec", "txet"))
}

func TestDryRunAnswersWithTheStatusItWouldHaveAndWritesNothing(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "dryrun")
	before := count(t, provider, configMaps)
	answer, err := consumer.in(bundles).Create(t.Context(), bundle("unreal", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	must(t, fieldIs(answer, "hello", "status", "text"))
	if row(answer, "far") == nil {
		t.Error("the answer does not say what it would be made of")
	}
	must(t, consumer.missing(bundles, "unreal"))
	must(t, consumer.missing(configMaps, "unreal"))
	if after := count(t, provider, configMaps); after != before {
		t.Errorf("the provider has %d ConfigMaps, had %d", after, before)
	}
}

// TestManyWritersOfOneInstanceAgree has writers change one instance at once: all writes count, and the children
// end up as the last one wants them.
func TestManyWritersOfOneInstanceAgree(t *testing.T) {
	_, consumer := theOffers(t), newConsumer(t, "writers")
	consumer.create(bundle("busy", nil))
	const writers, writes = 4, 5
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for i := range writes {
				patch := fmt.Sprintf(`{"spec":{"text":"%d-%d","labels":{"w%d":"%d"}}}`, writer, i, writer, i)
				_, err := consumer.in(bundles).Patch(t.Context(), "busy", mergePatch, []byte(patch), metav1.PatchOptions{})
				if err != nil {
					t.Errorf("writer %d: %v", writer, err)
				}
			}
		})
	}
	all.Wait()
	last := consumer.get(bundles, "busy")
	text, _, _ := unstructured.NestedString(last.Object, "spec", "text")
	eventually(t, "the children are as the last writer wants them", func() error {
		if err := consumer.has(secrets, "busy-sealed", encoded(text), "data", "text"); err != nil {
			return err
		}
		return consumer.has(configMaps, "busy", text, "data", "text")
	})
	for writer := range writers {
		must(t, consumer.has(configMaps, "busy-map", fmt.Sprint(writes-1), "data", fmt.Sprintf("w%d", writer)))
	}
}
