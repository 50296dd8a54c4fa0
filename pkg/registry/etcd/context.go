package etcd

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
)

type clusterKey struct{}

// WithCluster puts the logical cluster of a request into its context: an id, or Wildcard
// for reads over all clusters. All storage keys are made from it.
func WithCluster(ctx context.Context, cluster logicalcluster.Name) context.Context {
	return context.WithValue(ctx, clusterKey{}, cluster)
}

// ClusterFrom returns the logical cluster of a request; ok is false if it has none.
func ClusterFrom(ctx context.Context) (cluster logicalcluster.Name, ok bool) {
	cluster, ok = ctx.Value(clusterKey{}).(logicalcluster.Name)
	return cluster, ok && !cluster.Empty()
}

// Wildcard stands for all logical clusters. Only reads may use it.
const Wildcard logicalcluster.Name = "*"
