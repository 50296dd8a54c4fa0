package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// manySecrets is how many kcp has to label, one after the other, when it begins to show them through a claim:
	// enough that lists of some of them are seen.
	manySecrets = 60
	// claimRounds: in which part of that time krop reads differs from one to the next.
	claimRounds = 3
	// hasty is the round in which the claim is accepted again before kcp has hidden everything. What it has hidden by then it
	// doesn't show again before the next round.
	hasty = 1
)

// TestChildrenOfASelectionStayWhileItsClaimComesAndGoes has kcp answer lists that lack objects which are there: after
// a claim was accepted again, it shows them one by one.
func TestChildrenOfASelectionStayWhileItsClaimComesAndGoes(t *testing.T) {
	provider := theOffers(t)
	provider.kubectl("apply", "-f", testdata("mirrors.yaml"))
	consumer := newUser(t, "flickers")
	must(t, bindOfferings(t.Context(), consumer.user, "mirrors"))
	for i := range manySecrets {
		consumer.writes(secrets, "Secret", fmt.Sprint("s", i), map[string]string{"tier": "gold"}, nil)
	}
	mirror := consumer.makes(authored("mirrors"), instance("Mirror", "holds", map[string]any{"tier": "gold"}))
	made := func() map[string]types.UID {
		children := consumer.childrenOf(mirror.GetUID())
		maps.Copy(children, provider.childrenOf(mirror.GetUID()))
		return children
	}
	eventually(t, "there is a child for each on both planes", func() error {
		if got := len(made()); got != 2*manySecrets {
			return fmt.Errorf("%d children", got)
		}
		return conditionIs(consumer.get(authored("mirrors"), "holds"), "Ready", "True")
	})
	before := made()

	rejected, err := rejecting(t.Context(), "mirrors", "secrets")
	must(t, err)
	accepted, err := bindingOf(t.Context(), "mirrors")
	must(t, err)
	for round := range claimRounds {
		consumer.applies(rejected)
		if round == hasty {
			consumer.applies(accepted)
			continue
		}
		eventually(t, "the secrets can't be read", func() error {
			return errors.Join(consumer.hidden("secrets"), conditionIs(consumer.get(authored("mirrors"), "holds"), "Ready", "False"))
		})
		consumer.applies(accepted)
		eventually(t, "they can be read again", func() error {
			return conditionIs(consumer.get(authored("mirrors"), "holds"), "Ready", "True")
		})
		if diff := cmp.Diff(before, made()); diff != "" {
			t.Fatalf("children were deleted, or made anew:\n%s", diff)
		}
	}

	consumer.delete(secrets, "s0")
	eventually(t, "the children of what is gone go", func() error {
		left := made()
		if len(left) != len(before)-2 {
			return errors.New(cmp.Diff(before, left))
		}
		return nil
	})
}

// hidden says what is wrong unless kcp has hidden all objects of the resource from the provider of mirrors.
func (a actor) hidden(resource string) error {
	said, err := bed.Kubectl(a.user).Run(a.t.Context(), "get", "apibinding", "mirrors", "-o", "jsonpath={.status.appliedPermissionClaims[*].resource}")
	if err == nil && slices.Contains(strings.Fields(said.Stdout), resource) {
		err = fmt.Errorf("%s are shown", resource)
	}
	return err
}

// childrenOf is what an instance has made in a workspace, by name.
func (a actor) childrenOf(instance types.UID) map[string]types.UID {
	a.t.Helper()
	list, err := a.in(configMaps).List(a.t.Context(), metav1.ListOptions{LabelSelector: "krop.opendefense.cloud/instance-uid=" + string(instance)})
	must(a.t, err)
	children := map[string]types.UID{}
	for _, child := range list.Items {
		children[child.GetName()] = child.GetUID()
	}
	return children
}
