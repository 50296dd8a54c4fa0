package publish

import (
	"context"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Origins says of which exports the kinds are that a program writes in kcp: those that the blueprint's workspace has
// bound, which is also what claims name by identity. Nodes of other kinds are not in the result.
func (p *Publisher) Origins(ctx context.Context, program *engine.Program) (map[v1alpha1.NodeID]v1alpha1.ExportKey, error) {
	origins := map[v1alpha1.NodeID]v1alpha1.ExportKey{}
	own := schema.GroupResource{Group: program.CRD.Spec.Group, Resource: program.CRD.Spec.Names.Plural}
	var bound map[schema.GroupResource]v1alpha1.ExportKey
	for _, node := range program.Nodes {
		resource := node.GVR.GroupResource()
		switch {
		case node.External || node.Target == v1alpha1.TargetHost || builtin[resource]:
			continue
		case node.Target == v1alpha1.TargetConsumer && resource == own:
			origins[node.ID] = program.Export // consumers of the export have no other kind of that name
			continue
		}
		if bound == nil {
			var err error
			if bound, err = p.boundIn(ctx, program.Export.Cluster); err != nil {
				return nil, err
			}
		}
		if export, ok := bound[resource]; ok {
			origins[node.ID] = export
		}
	}
	return origins, nil
}

// boundIn are the resources that a workspace has bound, and the exports that they are from.
func (p *Publisher) boundIn(ctx context.Context, cluster logicalcluster.Name) (map[schema.GroupResource]v1alpha1.ExportKey, error) {
	w, err := p.kcp.workspace(cluster.Path())
	if err != nil {
		return nil, err
	}
	bindings, err := w.kcp.ApisV1alpha2().APIBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explained(err, w.cluster, "list", apiBindings)
	}
	bound := map[schema.GroupResource]v1alpha1.ExportKey{}
	for i := range bindings.Items {
		addBound(bound, &bindings.Items[i])
	}
	return bound, nil
}

func addBound(bound map[schema.GroupResource]v1alpha1.ExportKey, binding *apisv1alpha2.APIBinding) {
	if binding.Spec.Reference.Export == nil || binding.Status.APIExportClusterName == "" {
		return
	}
	export := v1alpha1.ExportKey{
		Cluster: logicalcluster.Name(binding.Status.APIExportClusterName),
		Name:    binding.Spec.Reference.Export.Name,
	}
	for _, resource := range binding.Status.BoundResources {
		bound[schema.GroupResource{Group: resource.Group, Resource: resource.Resource}] = export
	}
}
