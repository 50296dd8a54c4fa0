package etcd

import (
	"fmt"
	"regexp"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// clusterID is what kcp's generated ids and root workspaces look like. It is stricter than
// logicalcluster.Name.IsValid, which lets anything pass that starts with "system:", and narrow
// enough that an id is always exactly one segment of a key.
var clusterID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$`)

// ValidateCluster refuses, with BadRequest, what isn't the id of one logical cluster. Wildcard isn't one.
func ValidateCluster(cluster logicalcluster.Name) error {
	if !clusterID.MatchString(cluster.String()) {
		return apierrors.NewBadRequest(fmt.Sprintf("%q is not the id of a logical cluster", cluster))
	}
	return nil
}
