package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/test/testbed"
)

// hostReturns bounds how long the loop takes to notice that the host is back: its longest pause between two tries
// of what fails, and some more on a busy machine.
const hostReturns = 3 * time.Minute

// TestHostThatIsDown: what needs it is refused for now, what doesn't goes on, and all is well once it is back.
func TestHostThatIsDown(t *testing.T) {
	provider, consumer, host := theRigs(t), newRigger(t, "hostdown"), theHost(t)
	created := consumer.createRig("before", nil)
	far := host.child(configMaps, created, "far").GetName()
	bed.Host.Kill()
	up := false
	defer func() {
		if !up {
			must(t, bed.Host.Start(t.Context()))
		}
	}()

	said := consumer.send(http.MethodPost, rigsPath, rig("during", nil))
	if said.StatusCode != http.StatusServiceUnavailable || said.Header.Get("Retry-After") == "" || !strings.Contains(said.Message, "host") {
		t.Errorf("create: %s, Retry-After %q: %q", said.Response.Status, said.Header.Get("Retry-After"), said.Message)
	}
	if strings.Contains(said.Message, "127.0.0.1") || strings.Contains(said.Message, "localhost") {
		t.Errorf("the answer says where the host is: %q", said.Message)
	}
	must(t, consumer.missing(rigs, "during"))
	must(t, consumer.missing(configMaps, "during"))
	said = provider.send(http.MethodPost, blueprintsPath, onHost("awaits", "Await", hostConfigMap()))
	if said.StatusCode != http.StatusServiceUnavailable || !strings.Contains(said.Message, "host") {
		t.Errorf("blueprint: %s: %q", said.Response.Status, said.Message)
	}

	consumer.delete(configMaps, "before")
	eventually(t, "what has nothing to do with the host goes on", func() error {
		return consumer.has(configMaps, "before", "hello", "data", "text")
	})
	eventually(t, "the row of what is on the host says so", func() error {
		r := row(consumer.get(rigs, "before"), "far")
		if message, _ := r["message"].(string); r["state"] != "Failed" || !strings.Contains(message, "host") {
			return fmt.Errorf("row: %v", r)
		}
		return nil
	})

	must(t, bed.Host.Start(t.Context()))
	up = true
	consumer.createRig("after", nil)
	must(t, within(hostReturns, func() error {
		r := row(consumer.get(rigs, "before"), "far")
		if r["state"] != "Ready" {
			return fmt.Errorf("row: %v", r)
		}
		return nil
	}))
	host.patch(configMaps, far, `{"data":{"token":"again"}}`)
	must(t, within(hostReturns, func() error { return consumer.has(rigs, "before", "again", "status", "token") }))
}

// TestKropThatIsStartedWithoutItsHost leaves what is on the host alone, says what is missing, and goes on where it
// was once it has the host again.
func TestKropThatIsStartedWithoutItsHost(t *testing.T) {
	provider, consumer, host := theRigs(t), newRigger(t, "hostless"), theHost(t)
	created := consumer.createRig("waits", nil)
	far := host.child(configMaps, created, "far")
	must(t, bed.Krop.Stop())
	must(t, bed.Krop.Start(t.Context(), testbed.WithFlags("--host-kubeconfig=")))
	again := false
	defer func() {
		if !again {
			must(t, bed.Krop.Stop())
			must(t, bed.Krop.Start(t.Context()))
		}
	}()

	said := provider.send(http.MethodPost, blueprintsPath, onHost("needy", "Needy", hostConfigMap()))
	if said.StatusCode != http.StatusUnprocessableEntity || len(said.Details.Causes) != 1 || said.Details.Causes[0].Field != "spec.resources[0].target" ||
		!strings.Contains(said.Message, "--host-kubeconfig") || !strings.Contains(said.Message, "--host-in-cluster") {
		t.Errorf("new blueprint: %s: %q %v", said.Response.Status, said.Message, said.Details)
	}
	const remedy = "--host-in-cluster"
	eventually(t, "the blueprint says what is missing", func() error {
		for _, condition := range statusConditions(provider.blueprint("rigs")) {
			if condition.Type == v1alpha1.ConditionCompiled && condition.Status == metav1.ConditionFalse && strings.Contains(condition.Message, remedy) {
				return nil
			}
		}
		return fmt.Errorf("conditions: %v", statusConditions(provider.blueprint("rigs")))
	})
	must(t, consumer.has(rigs, "waits", "hello", "spec", "text"))
	if said := consumer.send(http.MethodPost, rigsPath, rig("refused", nil)); said.StatusCode != http.StatusServiceUnavailable || !strings.Contains(said.Message, remedy) {
		t.Errorf("new instance: %s: %q", said.Response.Status, said.Message)
	}
	must(t, consumer.missing(rigs, "refused"))
	consumer.delete(rigs, "waits")
	eventually(t, "the deletion waits, and says for what", func() error {
		r := row(consumer.get(rigs, "waits"), "sealed")
		if message, _ := r["message"].(string); r["state"] != "Deleting" || !strings.Contains(message, remedy) {
			return fmt.Errorf("row: %v", r)
		}
		return nil
	})
	if now := host.child(configMaps, created, "far"); now.GetUID() != far.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Error("the child on the host was touched")
	}

	must(t, bed.Krop.Stop())
	must(t, bed.Krop.Start(t.Context()))
	again = true
	eventually(t, "the blueprint compiles again", func() error { return conditionIs(provider.blueprint("rigs"), "Compiled", "True") })
	eventually(t, "deletion is finished", func() error {
		if err := consumer.missing(rigs, "waits"); err != nil {
			return err
		}
		return nothingOf(created, host)
	})
}
