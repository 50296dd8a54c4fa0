package integration

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/test/testbed"
)

// gazes are instances that read a leaf. Their provider is one who has bound leaves already.
var gazes = layer{branches.provider, nestedResource("gazes"), "Gaze"}

// TestAnInstanceThatAnotherReadsIsFollowed has krop serve what is read, too: nobody's admission marks it for kcp.
func TestAnInstanceThatAnotherReadsIsFollowed(t *testing.T) {
	must(t, nestedReady())
	provider := as(t, gazes.provider)
	provider.kubectl("apply", "-f", testdata("nested/gazes.yaml"))
	provider.kubectl("wait", "--for=condition=Published", "rgd/gazes", "--timeout=60s")
	user := testbed.User("gazes")
	must(t, bed.AddUser(t.Context(), user))
	for _, l := range []layer{leaves, gazes} {
		must(t, bindLayer(t.Context(), user, l))
	}
	consumer := as(t, user)
	_, err := consumer.in(gazes.resource).Create(t.Context(), nestedInstance(gazes, "gaze", "leaf"), metav1.CreateOptions{})
	must(t, err)
	must(t, consumer.missing(configMaps, "gaze-note"))

	leaf, err := consumer.in(leaves.resource).Create(t.Context(), nestedInstance(leaves, "leaf", "text"), metav1.CreateOptions{})
	must(t, err)
	leafer := as(t, leaves.provider)
	grows := func(token string) {
		t.Helper()
		leafer.patch(configMaps, leafer.child(configMaps, leaf, "far").GetName(), fmt.Sprintf(`{"data":{"token":%q}}`, token))
		consumer.awaitsField(configMaps, "gaze-note", token, "data", "token")
		consumer.awaitsField(gazes.resource, "gaze", token, "status", "token")
	}
	grows("bud")
	grows("green")
	if owners := consumer.get(leaves.resource, "leaf").GetOwnerReferences(); len(owners) != 0 {
		t.Errorf("the leaf, which is only read, is owned by %v", owners)
	}
}
