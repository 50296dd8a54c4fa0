package story

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/test/testbed"
)

// state is the identities and generations of all objects that the story can bring about, by workspace.
type state []string

// watched are the kinds by who has them.
var watched = map[testbed.User][]schema.GroupVersionResource{
	testbed.Provider:  {Servers, ConfigMaps, Secrets, Blueprints, Exports},
	testbed.Consumer:  {Databases, ConfigMaps, Secrets},
	testbed.Consumer2: {Databases, ConfigMaps, Secrets},
	testbed.Host:      {VMs, ConfigMaps, Secrets},
}

// state reads everything. A kind that isn't there yet has no objects.
func (s *Scene) state(ctx context.Context) (state, error) {
	var found state
	for user, resources := range watched {
		for _, resource := range resources {
			objects, err := s.list(ctx, user, resource)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", resource.Resource, user, err)
			}
			for _, object := range objects.Items {
				found = append(found, fmt.Sprintf("%s/%s/%s (uid %s, generation %d)",
					user, resource.Resource, object.GetName(), object.GetUID(), object.GetGeneration()))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// sameAs says what came and what went.
func (s state) sameAs(after state) error {
	var changes []string
	for _, object := range after {
		if !slices.Contains(s, object) {
			changes = append(changes, "+ "+object)
		}
	}
	for _, object := range s {
		if !slices.Contains(after, object) {
			changes = append(changes, "- "+object)
		}
	}
	if len(changes) > 0 {
		return fmt.Errorf("nothing should have changed, but did:\n%s", strings.Join(changes, "\n"))
	}
	return nil
}
