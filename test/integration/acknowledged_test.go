package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCrashOnceSomethingIsStoredOrAnswered kills krop at the moments of a create that lie in krop's own storage,
// and that TestCrashAtEveryMoment can't see between krop and kcp: as soon as the intent is stored, as soon as the
// status is, and as soon as the answer is there.
func TestCrashOnceSomethingIsStoredOrAnswered(t *testing.T) {
	provider, consumer := theOffers(t), newConsumer(t, "acknowledged")
	// An instance's events are what is stored of it: first the intent, then the status.
	for events, moment := range []string{"the answer is sent", "the intent is stored", "the status is stored"} {
		t.Run(moment, func(t *testing.T) {
			provider.t, consumer.t = t, t
			name := fmt.Sprintf("moment-%d", events)
			watcher, err := consumer.in(bundles).Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: name}))
			must(t, err)
			defer watcher.Stop()
			answered := make(chan error, 1)
			go func() {
				_, err := consumer.in(bundles).Create(t.Context(), bundle(name, map[string]any{"text": "first", "parts": []any{"a", "b"}}), metav1.CreateOptions{})
				answered <- err
			}()
			of := &fate{tried: []string{"first"}}
			if events == 0 {
				must(t, <-answered)
				of.acknowledged = "first"
			}
			for range events {
				if _, open := <-watcher.ResultChan(); !open {
					t.Fatal("the watch has ended")
				}
			}
			bed.Krop.Kill()
			if events > 0 && <-answered == nil {
				of.acknowledged = "first"
			}
			must(t, bed.Krop.Start(t.Context()))
			eventually(t, "what is stored is finished", func() error {
				if _, err := consumer.in(bundles).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
					return err
				}
				return consumer.keeps(map[string]*fate{name: of})
			})
			eventually(t, "no child is without an instance", func() error { return noOrphans(consumer, provider, bundles) })
		})
	}
}
