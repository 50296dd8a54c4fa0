package integration

import (
	"fmt"
	"path"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pairs is the offering that crashes are tried on.
var pairs = schema.GroupVersionResource{Group: "test.example.org", Version: "v1alpha1", Resource: "pairs"}

const (
	// mostMoments is more than any of the requests has: a test that goes on for ever has a defect.
	mostMoments = 20
	// laterWrites is how long, after the answer, krop may take for writes that the loop does.
	laterWrites = 3 * time.Second
)

// TestCrashAtEveryMoment kills krop before and after each of its writes to kcp, dry runs included, while an
// instance is created, changed and deleted. Whatever the moment: nothing that was acknowledged is lost, what was
// not is there as a whole or not at all, and no child is without an instance.
func TestCrashAtEveryMoment(t *testing.T) {
	provider := theOffers(t)
	provider.kubectl("apply", "-f", testdata("pairs.yaml"))
	provider.kubectl("wait", "--for=condition=Ready", "rgd/pairs", "--timeout=30s")
	consumer := newUser(t, "moments")
	_, err := bed.Kubectl(consumer.user).Apply(t.Context(), readTestdata(t, "pairs-binding.yaml"))
	must(t, err)
	consumer.kubectl("wait", "--for=condition=Ready", "apibinding/pairs", "--timeout=60s")
	killer := startKiller(t)

	t.Run("create", func(t *testing.T) {
		consumer.crashes(t, killer, provider, func(name string) (string, func() error) {
			return "", func() error { return consumer.createPair(name) }
		})
	})
	t.Run("update", func(t *testing.T) {
		consumer.crashes(t, killer, provider, func(name string) (string, func() error) {
			must(t, consumer.createPair(name))
			return "first", func() error {
				_, err := consumer.in(pairs).Patch(t.Context(), name, mergePatch, []byte(`{"spec":{"text":"second"}}`), metav1.PatchOptions{})
				return err
			}
		})
	})
	t.Run("delete", func(t *testing.T) {
		consumer.crashes(t, killer, provider, func(name string) (string, func() error) {
			must(t, consumer.createPair(name))
			return "first", func() error { return consumer.in(pairs).Delete(t.Context(), name, metav1.DeleteOptions{}) }
		})
	})
}

func (a actor) createPair(name string) error {
	_, err := a.in(pairs).Create(a.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.example.org/v1alpha1", "kind": "Pair",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"text": "first"},
	}}, metav1.CreateOptions{})
	return err
}

// crashes does a request again and again, each time with krop killed at the next moment, until there is no moment
// left. prepare returns the text that the instance has before, and the request.
func (a actor) crashes(t *testing.T, killer *killer, provider actor, prepare func(name string) (string, func() error)) {
	t.Helper()
	a.t, provider.t = t, t
	for i := range mostMoments {
		at := moment{write: i/2 + 1, after: i%2 == 1}
		name := fmt.Sprintf("%s-%d", path.Base(t.Name()), i)
		before, request := prepare(name)
		killed := killer.arm(at)
		err := request()
		select {
		case <-killed:
		case <-time.After(laterWrites):
		}
		if killer.disarm() {
			if i == 0 {
				t.Fatal("krop has written nothing")
			}
			t.Logf("%d moments", i)
			return
		}
		<-killed
		killer.startKrop(t)
		eventually(t, fmt.Sprintf("after a kill at %+v (the request was answered with %v)", at, err), func() error {
			if err := a.isWhole(name, before, err); err != nil {
				return err
			}
			return noOrphans(a, provider, pairs)
		})
	}
	t.Fatalf("there are more than %d moments", mostMoments)
}

// isWhole says what is wrong with an instance, given what it was before the request, and what the request was answered.
func (a actor) isWhole(name, before string, answer error) error {
	if a.missing(pairs, name) == nil {
		deleting := path.Base(a.t.Name()) == "delete"
		if !deleting && (before != "" || answer == nil) {
			return fmt.Errorf("%s was acknowledged and is lost", name)
		}
		return nil
	}
	instance, err := a.in(pairs).Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, _, _ := unstructured.NestedString(instance.Object, "spec", "text")
	switch {
	case instance.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is still being deleted", name)
	case path.Base(a.t.Name()) == "delete" && answer == nil:
		return fmt.Errorf("%s was deleted and is there", name)
	case path.Base(a.t.Name()) == "update" && answer == nil && text != "second":
		return fmt.Errorf("%s has lost an acknowledged update", name)
	}
	return a.has(configMaps, name, text, "data", "text")
}
