package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// eventPatience is when an event is taken for lost.
const eventPatience = 30 * time.Second

// statusEvents measures how long a change of a child takes to show in the instance's status, as a
// watch of the instance sees it. The child's own write is part of it.
func (b *bench) statusEvents(ctx context.Context, much size) error {
	if err := create(ctx, b.consumer, mirrors, instance("Mirror", "mirror")); err != nil {
		return err
	}
	watcher, err := b.consumer.Resource(mirrors).Namespace(namespace).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: "mirror"}))
	if err != nil {
		return err
	}
	defer watcher.Stop()
	return b.compare("A child changes (the write included); aim: p50 under 25 ms after the write", 0, much.operations,
		operation{"child change to instance status", func(i int) error {
			value := fmt.Sprintf("value-%d", i)
			patch := fmt.Appendf(nil, `{"data":{"observed":%q}}`, value)
			if _, err := b.consumer.Resource(configMaps).Namespace(namespace).Patch(ctx, "mirror-source", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return err
			}
			return await(watcher, value)
		}})
}

func await(watcher watch.Interface, value string) error {
	deadline := time.After(eventPatience)
	for {
		select {
		case event, ok := <-watcher.ResultChan():
			if !ok {
				return errors.New("the watch has ended")
			}
			object, isObject := event.Object.(*unstructured.Unstructured)
			if !isObject {
				continue
			}
			if got, _, _ := unstructured.NestedString(object.Object, "status", "observed"); got == value {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("status did not become %q within %s", value, eventPatience)
		}
	}
}
