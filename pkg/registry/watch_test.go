package registry

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAWatchThatIsLeftEarlyLeavesNothingBehind(t *testing.T) {
	source := watch.NewFakeWithChanSize(3, false)
	for range 3 {
		source.Add(&unstructured.Unstructured{})
	}
	filtered := watch.Filter(source, func(event watch.Event) (watch.Event, bool) { return event, true })
	<-filtered.ResultChan()
	drain(filtered)
	if _, open := <-filtered.ResultChan(); open {
		t.Error("events are still waiting to be taken")
	}
}
