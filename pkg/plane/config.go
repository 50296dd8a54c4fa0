package plane

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Config is how clients other than a Plane reach a target: for what is no object of a child kind,
// such as access reviews. It shares connections with the planes of its identity.
func (s *Set) Config(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, consumer logicalcluster.Name) (*rest.Config, error) {
	found, err := s.address(ctx, target, export, consumer)
	if err != nil {
		return nil, err
	}
	return found.at(), nil
}
