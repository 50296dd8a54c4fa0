package kind

import (
	"context"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func TestCompactedVersionsAreGone(t *testing.T) {
	group := newGroup()
	k := newKind(t, definition(t, group))
	store := newStore(t, k)
	ctx := in(t.Context(), one, namespace)
	old := create(t, ctx, store, decoded(k, "a")).GetResourceVersion()
	var latest string
	for i := range 5 {
		latest = create(t, ctx, store, decoded(k, fmt.Sprintf("b%d", i))).GetResourceVersion()
	}
	if _, err := backend.Client().Compact(t.Context(), revision(t, latest)); err != nil {
		t.Fatal(err)
	}
	// The first store still remembers; one that has started since, as after a restart, doesn't.
	client := serve(t, newStore(t, k)).client(t, one, nil).Namespace(namespace)

	if _, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list as of then: %v", err)
	}
	watcher, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	event := <-watcher.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !(apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
		t.Errorf("a watch since then: %s %v", event.Type, event.Object)
	}
}

func TestWatchesResumeAndBookmark(t *testing.T) {
	store, _, client := served(t)
	created, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), widget(store.Kind, "b", with("blue", "spec", "color")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watcher, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	if got := nextEvent(t, watcher); got != "ADDED blue" {
		t.Errorf("resumed with %s", got)
	}

	yes := true
	initial, err := client.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer initial.Stop()
	if first, second := nextEvent(t, initial), nextEvent(t, initial); first != "ADDED red" || second != "ADDED blue" {
		t.Errorf("began with %s, %s", first, second)
	}
	bookmark := <-initial.ResultChan()
	if object, ok := bookmark.Object.(*unstructured.Unstructured); bookmark.Type != watch.Bookmark || !ok ||
		object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("then %s %v", bookmark.Type, bookmark.Object)
	}
}

func TestAnUnmodifiedInformerSyncsAndFollows(t *testing.T) {
	store, _, client := served(t)
	if _, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	seen := map[string]bool{}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, 0, nil)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		mutex.Lock()
		defer mutex.Unlock()
		seen[object.(*unstructured.Unstructured).GetName()] = true
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("never synced")
	}
	if _, err := client.Create(ctx, widget(store.Kind, "b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the informer follows", func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return seen["a"] && seen["b"]
	})
}
