package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Composes says whether instances have children of the export's kind.
func (p *Program) Composes(export v1alpha1.ExportKey) bool {
	return slices.ContainsFunc(p.Nodes, func(node Node) bool { return node.Origin == export })
}

// Resource is that of the program's own kind.
func (p *Program) Resource() schema.GroupResource {
	if p.CRD == nil {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: p.CRD.Spec.Group, Resource: p.CRD.Spec.Names.Plural}
}
