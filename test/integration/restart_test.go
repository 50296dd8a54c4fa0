package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

const (
	// crashRounds is bounded by how long a test may take: each has a restart of some seconds.
	crashRounds = 6
	// crashWriters keep several requests at different points of their way when krop is killed.
	crashWriters = 3
	// crashLatest is how long after the start of writing krop is killed at the latest: some ten writes.
	crashLatest = 1500 * time.Millisecond
)

// fate is what is known of an instance that a writer has written.
type fate struct {
	// acknowledged is the last text whose write was answered; "" if none was.
	acknowledged string
	// tried are texts that were sent afterwards, and may have been stored or not.
	tried []string
	// deleting is set once a deletion was sent, deleted once it was answered.
	deleting, deleted bool
}

// TestKillLosesNothingAndLeavesNothing kills krop at random moments while instances are written, and checks what
// must hold once it is back: what was acknowledged is there, what was deleted is gone, each instance has its
// children as its spec says, and no child belongs to no instance.
func TestKillLosesNothingAndLeavesNothing(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "crashes")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	fates := map[string]*fate{}
	for round := range crashRounds {
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		made := make([]map[string]*fate, crashWriters)
		for writer := range crashWriters {
			made[writer] = map[string]*fate{}
			writers.Go(func() { consumer.write(ctx, fmt.Sprintf("r%d-w%d", round, writer), made[writer]) })
		}
		time.Sleep(time.Duration(random.Int64N(int64(crashLatest))))
		bed.Krop.Kill()
		stop()
		writers.Wait()
		must(t, bed.Krop.Start(t.Context()))
		for _, of := range made {
			for name, fate := range of {
				fates[name] = fate
			}
		}
	}
	t.Logf("%d instances were written", len(fates))
	eventually(t, "every instance is as it must be", func() error { return consumer.keeps(fates) })
	eventually(t, "no child is without an instance", func() error { return noOrphans(consumer, provider, bundles) })
}

// write creates, changes and deletes instances until the context ends.
func (a actor) write(ctx context.Context, prefix string, fates map[string]*fate) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s-%d", prefix, i)
		f := &fate{}
		fates[name] = f
		a.attempt(f, "first", func() error {
			_, err := a.in(bundles).Create(ctx, bundle(name, map[string]any{"text": "first", "parts": []any{"a", "b"}}), metav1.CreateOptions{})
			return err
		})
		a.attempt(f, "second", func() error {
			_, err := a.in(bundles).Patch(ctx, name, mergePatch, []byte(`{"spec":{"text":"second","parts":["a"]}}`), metav1.PatchOptions{})
			return err
		})
		if i%2 == 0 && ctx.Err() == nil {
			f.deleting = true
			f.deleted = a.in(bundles).Delete(ctx, name, metav1.DeleteOptions{}) == nil
		}
	}
}

// attempt remembers what became of a write.
func (a actor) attempt(f *fate, text string, write func() error) {
	if write() == nil {
		f.acknowledged, f.tried = text, nil
		return
	}
	f.tried = append(f.tried, text)
}

// keeps says what is wrong with the instances, given what writers know of them.
func (a actor) keeps(fates map[string]*fate) error {
	list, err := a.in(bundles).List(a.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		found[list.Items[i].GetName()] = &list.Items[i]
	}
	for name, f := range fates {
		instance := found[name]
		switch {
		case f.deleted && instance != nil:
			return fmt.Errorf("%s was deleted and is there: %v", name, instance.Object["status"])
		case instance == nil && f.acknowledged != "" && !f.deleting:
			return fmt.Errorf("%s was acknowledged and is lost", name)
		case instance == nil:
			continue
		}
		if err := a.keepsOne(instance, f); err != nil {
			return err
		}
	}
	return nil
}

// keepsOne says what is wrong with an instance that exists.
func (a actor) keepsOne(instance *unstructured.Unstructured, f *fate) error {
	name := instance.GetName()
	if instance.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is still being deleted: %v", name, instance.Object["status"])
	}
	text, _, _ := unstructured.NestedString(instance.Object, "spec", "text")
	if text != f.acknowledged && !slices.Contains(f.tried, text) {
		return fmt.Errorf("%s has text %q, acknowledged was %q, tried %v", name, text, f.acknowledged, f.tried)
	}
	if err := a.has(configMaps, name, text, "data", "text"); err != nil {
		return err
	}
	if err := a.has(secrets, name+"-sealed", encoded(text), "data", "text"); err != nil {
		return err
	}
	if text == "second" {
		return a.missing(configMaps, name+"-b")
	}
	return a.has(configMaps, name+"-b", "b", "data", "part")
}

// noOrphans says which child, in the consumer's or the provider's workspace, has no instance of the kind. The consumer
// has instances of that kind only.
func noOrphans(consumer, provider actor, kind schema.GroupVersionResource) error {
	list, err := consumer.in(kind).List(consumer.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, instance := range list.Items {
		known[string(instance.GetUID())] = true
	}
	of := metav1.ListOptions{LabelSelector: v1alpha1.LabelConsumerCluster + "=" + consumer.cluster()}
	for _, plane := range []actor{consumer, provider} {
		for _, resource := range []schema.GroupVersionResource{configMaps, secrets} {
			children, err := plane.in(resource).List(plane.t.Context(), of)
			if err != nil {
				return err
			}
			for _, child := range children.Items {
				if !known[child.GetLabels()[v1alpha1.LabelInstanceUID]] {
					return fmt.Errorf("%s %s of %s has no instance", resource.Resource, child.GetName(), plane.user)
				}
			}
		}
	}
	return nil
}

func TestRestartGoesOnWhereItWas(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "restarts")
	pending := consumer.create(bundle("pending", nil))
	far := provider.child(configMaps, pending, "far").GetName()

	factory := dynamicinformer.NewDynamicSharedInformerFactory(consumer.Interface, 0)
	informer := factory.ForResource(bundles).Informer()
	seen := &events{seen: map[string]int{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) { seen.count("added", object) }})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.Start(ctx.Done())
	eventually(t, "the informer has synced", func() error { return seen.saw("added", "pending") })

	must(t, bed.Krop.Stop())
	// what happens while krop is away is found when it is back
	provider.patch(configMaps, far, `{"data":{"token":"meanwhile"}}`)
	consumer.delete(configMaps, "pending-map")
	must(t, bed.Krop.Start(t.Context()))
	eventually(t, "what happened meanwhile has its effect", func() error {
		if err := consumer.has(configMaps, "pending-relay", "meanwhile", "data", "token"); err != nil {
			return err
		}
		_, err := consumer.in(configMaps).Get(t.Context(), "pending-map", metav1.GetOptions{})
		return err
	})
	consumer.create(bundle("later", nil))
	eventually(t, "an informer from before goes on", func() error { return seen.saw("added", "later") })
	if consumer.get(bundles, "pending").GetUID() != pending.GetUID() {
		t.Error("the instance is another one")
	}
}
