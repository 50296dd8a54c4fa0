package integration

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestALoopOfBlueprintsIsRefusedWhereItCloses edits blueprints so that each would be composed of itself, over
// others or at once, in the consumer's workspace or in the provider's.
func TestALoopOfBlueprintsIsRefusedWhereItCloses(t *testing.T) {
	must(t, nestedReady())
	for _, provider := range []layer{leaves, trees} { // who edits needs to see what trees are
		must(t, bindLayer(t.Context(), provider.provider, trees))
	}
	named := func(l layer) string {
		return fmt.Sprintf("%s (workspace %s)", l.resource.Resource, as(t, l.provider).cluster())
	}
	for _, edit := range []struct {
		of    layer
		file  string
		field string
		way   []string
	}{
		{leaves, "leaves-of-trees", "spec.resources[1]", []string{named(leaves), named(trees), named(branches), named(leaves)}},
		{trees, "trees-of-trees", "spec.resources[0]", []string{named(trees), named(trees)}},
	} {
		for _, target := range []string{"consumer", "provider"} {
			t.Run(edit.file+" of the "+target, func(t *testing.T) {
				manifest := strings.Replace(readTestdata(t, "nested/"+edit.file+".yaml"), "target: consumer", "target: "+target, 1)
				_, err := bed.Kubectl(edit.of.provider).Apply(t.Context(), manifest, "--dry-run=server")
				if err == nil {
					t.Fatal("it is accepted")
				}
				for _, part := range []string{strings.Join(edit.way, " -> "), edit.field, "is invalid"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the answer doesn't say %q: %v", part, err)
					}
				}
			})
		}
	}
}

// groves are trees' provider's, composed of branches in its own workspace.
var groves = layer{trees.provider, nestedResource("groves"), "Grove"}

func TestAProviderCanBeTheConsumerOfWhatItsOwnInstancesAreComposedOf(t *testing.T) {
	must(t, nestedReady())
	provider := as(t, groves.provider)
	must(t, bindLayer(t.Context(), groves.provider, leaves)) // which branches there are composed of
	provider.kubectl("apply", "-f", testdata("nested/groves-rights.yaml"))
	eventually(t, "the blueprint is accepted once the rights are known", func() error {
		_, err := bed.Kubectl(groves.provider).Run(t.Context(), "apply", "-f", testdata("nested/groves.yaml"))
		return err
	})
	provider.kubectl("wait", "--for=condition=Published", "rgd/groves", "--timeout=60s")
	consumer := newUser(t, "landlord")
	must(t, bindLayer(t.Context(), consumer.user, groves))

	grove, err := consumer.in(groves.resource).Create(t.Context(), nestedInstance(groves, "sacred", "hello"), metav1.CreateOptions{})
	must(t, err)
	branch := provider.child(branches.resource, grove, "branch")
	leaf := provider.get(leaves.resource, branch.GetName()+"-leaf")
	must(t, fieldIs(leaf, "hello", "spec", "text"))

	leafer := as(t, leaves.provider)
	leafer.patch(configMaps, leafer.child(configMaps, leaf, "far").GetName(), `{"data":{"token":"acorn"}}`)
	eventually(t, "the token comes up across all planes", func() error {
		return consumer.has(groves.resource, "sacred", "acorn", "status", "token")
	})
	consumer.kubectl("delete", "apibinding", groves.resource.Resource, "--timeout=60s")
	eventually(t, "nothing is left with the providers", func() error {
		if err := provider.missing(branches.resource, branch.GetName()); err != nil {
			return err
		}
		if err := provider.missing(leaves.resource, leaf.GetName()); err != nil {
			return err
		}
		return nothingOf(leaf, leafer)
	})
}
