package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNestedInstancesAreComposedAcrossThreeProviders(t *testing.T) {
	consumer := newGrower(t, "grows")
	tree := consumer.grows("oak", "hello")
	must(t, consumer.has(branches.resource, branchOf("oak"), "hello", "spec", "text"))
	must(t, consumer.has(leaves.resource, leafOf("oak"), "hello", "spec", "text"))
	must(t, consumer.has(configMaps, mapOf("oak"), "hello", "data", "text"))

	branch := consumer.get(branches.resource, branchOf("oak"))
	if owners := branch.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != tree.GetUID() {
		t.Errorf("the branch is owned by %v", owners)
	}
	if !shownTo(branch) {
		t.Errorf("the branch can't be seen by the provider of trees: %v", branch.GetLabels())
	}
	generation := branch.GetGeneration()

	writesToken(t, consumer, "oak", "acorn")
	for _, each := range []struct {
		of   layer
		name string
	}{{leaves, leafOf("oak")}, {branches, branchOf("oak")}, {trees, "oak"}} {
		eventually(t, "the token comes up to the "+each.of.kind+", by events", func() error {
			return consumer.has(each.of.resource, each.name, "acorn", "status", "token")
		})
	}
	eventually(t, "what waits for the token is made", func() error {
		return consumer.has(configMaps, "oak-note", "acorn", "data", "token")
	})
	eventually(t, "all of it is ready", func() error { return conditionIs(consumer.get(trees.resource, "oak"), "Ready", "True") })
	if got := consumer.get(branches.resource, branchOf("oak")).GetGeneration(); got != generation {
		t.Errorf("the branch's generation went from %d to %d, although nobody changed its spec", generation, got)
	}
	eventually(t, "it comes to rest", func() error { return consumer.rests("oak") })
}

// rests says what of a tree is written while another one grows up, which takes all that one that never comes to
// rest would need.
func (a actor) rests(name string) error {
	before := a.versions(name)
	witness := a.grows(fmt.Sprintf("%s-%d", name, time.Now().UnixNano()), "hello").GetName()
	writesToken(a.t, a, witness, "acorn")
	eventually(a.t, "the witness is ready", func() error { return conditionIs(a.get(trees.resource, witness), "Ready", "True") })
	if after := a.versions(name); after != before {
		return fmt.Errorf("versions of tree, branch and leaf went from %v to %v", before, after)
	}
	return nil
}

// versions are those of a tree, its branch and its leaf.
func (a actor) versions(tree string) [3]string {
	a.t.Helper()
	return [3]string{
		a.get(trees.resource, tree).GetResourceVersion(),
		a.get(branches.resource, branchOf(tree)).GetResourceVersion(),
		a.get(leaves.resource, leafOf(tree)).GetResourceVersion(),
	}
}

func TestWhatADeepChildRefusesIsTheAnswerToTheUser(t *testing.T) {
	consumer := newGrower(t, "refused")
	_, err := consumer.in(trees.resource).Create(t.Context(), nestedInstance(trees, "long", strings.Repeat("x", 21)), metav1.CreateOptions{})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("the answer is %v, want the 422 of the leaf", err)
	}
	said := status.Status()
	for _, part := range []string{`resource "branch"`, `resource "leaf"`, "spec.text"} {
		if !strings.Contains(said.Message, part) {
			t.Errorf("the message doesn't say %s: %s", part, said.Message)
		}
	}
	for _, l := range []layer{trees, branches, leaves} {
		list, err := consumer.in(l.resource).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(list.Items) > 0 {
			t.Errorf("%s %s was stored", l.kind, list.Items[0].GetName())
		}
	}
}

func TestDriftInTheMiddleOfNestedInstancesIsRepaired(t *testing.T) {
	consumer := newGrower(t, "drifts")
	consumer.grows("elm", "right")
	consumer.patch(branches.resource, branchOf("elm"), `{"spec":{"text":"wrong"}}`)
	eventually(t, "the branch is as its tree says", func() error {
		return consumer.has(branches.resource, branchOf("elm"), "right", "spec", "text")
	})
	consumer.patch(branches.resource, branchOf("elm"), `{"metadata":{"labels":{"krop.opendefense.cloud/instance-uid":null}}}`)
	eventually(t, "the branch has its marks again", func() error {
		if consumer.get(branches.resource, branchOf("elm")).GetLabels()["krop.opendefense.cloud/instance-uid"] == "" {
			return errors.New("it has not")
		}
		return nil
	})
	consumer.delete(leaves.resource, leafOf("elm"))
	eventually(t, "the leaf is there again, and what it is composed of", func() error {
		if err := consumer.has(leaves.resource, leafOf("elm"), "right", "spec", "text"); err != nil {
			return err
		}
		return consumer.has(configMaps, mapOf("elm"), "right", "data", "text")
	})
}

func TestNestedInstancesAreDeletedFromTheBottom(t *testing.T) {
	consumer := newGrower(t, "falls")
	consumer.grows("ash", "hello")
	consumer.patch(configMaps, mapOf("ash"), `{"metadata":{"finalizers":["example.org/hold"]}}`)
	consumer.delete(trees.resource, "ash")
	eventually(t, "the lowest child is being deleted", func() error {
		if consumer.get(configMaps, mapOf("ash")).GetDeletionTimestamp() == nil {
			return errors.New("it is not")
		}
		return nil
	})
	for _, each := range []struct {
		of   layer
		name string
	}{{trees, "ash"}, {branches, branchOf("ash")}, {leaves, leafOf("ash")}} {
		if consumer.get(each.of.resource, each.name).GetDeletionTimestamp() == nil {
			t.Errorf("%s %s isn't being deleted", each.of.kind, each.name)
		}
	}
	consumer.patch(configMaps, mapOf("ash"), `{"metadata":{"finalizers":null}}`)
	eventually(t, "all is gone", func() error {
		return errors.Join(consumer.missing(configMaps, mapOf("ash")), consumer.missing(leaves.resource, leafOf("ash")),
			consumer.missing(branches.resource, branchOf("ash")), consumer.missing(trees.resource, "ash"))
	})
}

func TestAClaimOnANestedKindIsAskedForByNameAndMayBeAcceptedLater(t *testing.T) {
	consumer := newGrower(t, "hesitates")
	must(t, bindLayer(t.Context(), consumer.user, trees, "branches"))
	plant := func() error {
		_, err := consumer.in(trees.resource).Create(t.Context(), nestedInstance(trees, "fir", "hello"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, "the claim is asked for", func() error {
		err := plant()
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %v, want 403", err)
		}
		if !strings.Contains(err.Error(), `{group: "nested.example.org", resource: branches`) || !strings.Contains(err.Error(), trees.export()) {
			return fmt.Errorf("the answer doesn't name the claim: %v", err)
		}
		return nil
	})
	// a branch of the consumer's own, which is there before anybody may see it
	_, err := consumer.in(branches.resource).Create(t.Context(), nestedInstance(branches, "own", "mine"), metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the branch is shown to nobody", func() error {
		if shownTo(consumer.get(branches.resource, "own")) {
			return errors.New("it is")
		}
		return nil
	})
	must(t, bindLayer(t.Context(), consumer.user, trees))
	eventually(t, "the branch is shown to the provider of trees", func() error {
		own := consumer.get(branches.resource, "own")
		if !shownTo(own) || own.GetGeneration() != 1 {
			return fmt.Errorf("labels %v, generation %d", own.GetLabels(), own.GetGeneration())
		}
		return nil
	})
	eventually(t, "trees can be planted", plant)
}

func TestNestedInstancesGoWhenTheOuterKindIsUnbound(t *testing.T) {
	consumer := newGrower(t, "uproots")
	consumer.grows("yew", "hello")
	leaf := consumer.get(leaves.resource, leafOf("yew"))
	consumer.kubectl("delete", "apibinding", trees.resource.Resource, "--timeout=60s")
	eventually(t, "what the tree was composed of is gone", func() error {
		return errors.Join(consumer.missing(branches.resource, branchOf("yew")), consumer.missing(leaves.resource, leafOf("yew")),
			consumer.missing(configMaps, mapOf("yew")), nothingOf(leaf, as(t, leaves.provider)))
	})
}

// nestedBurst is many times what one consumer may write at one time.
const nestedBurst = 60

func TestABurstOfNestedInstancesIsComposed(t *testing.T) {
	consumer := newGrower(t, "forests")
	failures := make(chan error, nestedBurst)
	var creates sync.WaitGroup
	for i := range nestedBurst {
		creates.Go(func() {
			_, err := consumer.in(trees.resource).Create(t.Context(), nestedInstance(trees, fmt.Sprint("t", i), "hello"), metav1.CreateOptions{})
			// Too many at one time may be refused, with the word to try again; what must not be is that nothing gets on.
			if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) {
				failures <- err
			}
		})
	}
	creates.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	list, err := consumer.in(trees.resource).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) < nestedBurst/2 {
		t.Errorf("%d of %d were accepted", len(list.Items), nestedBurst)
	}
	for _, tree := range list.Items {
		eventually(t, tree.GetName()+" is composed", func() error {
			return consumer.has(configMaps, mapOf(tree.GetName()), "hello", "data", "text")
		})
	}
}
