package engine

import (
	"slices"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Removable is the children that may be deleted now, of those that are to go: what is to go too, of a higher wave, is
// known not to depend on them. A child that can't be deleted so holds back what it depends on and nothing else.
//
// Waves, unlike dependencies, are recorded with a child. Where the program has no node for a row, or has it at another
// level by now, only the wave is known, and counts.
func (p *Program) Removable(going []v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	dependencies := p.transitive()
	var out []v1alpha1.ComposedResource
	for _, row := range going {
		held := slices.ContainsFunc(going, func(other v1alpha1.ComposedResource) bool {
			return other.Name != "" && other.Wave > row.Wave && mayDepend(dependencies, other, row)
		})
		if row.Name != "" && !held {
			out = append(out, row)
		}
	}
	return out
}

// reach is what is known of a node's place in the graph.
type reach struct {
	level int32
	// on has all nodes that it depends on, directly or not.
	on map[v1alpha1.NodeID]bool
}

// transitive relies on the order of nodes: each comes after those that it depends on.
func (p *Program) transitive() map[v1alpha1.NodeID]reach {
	all := make(map[v1alpha1.NodeID]reach, len(p.Nodes))
	for i := range p.Nodes {
		node := &p.Nodes[i]
		on := map[v1alpha1.NodeID]bool{}
		for _, dependency := range node.DependsOn {
			on[dependency] = true
			for further := range all[dependency].on {
				on[further] = true
			}
		}
		all[node.ID] = reach{level: node.Level, on: on}
	}
	return all
}

func mayDepend(dependencies map[v1alpha1.NodeID]reach, dependent, on v1alpha1.ComposedResource) bool {
	a, knowsA := dependencies[v1alpha1.NodeID(dependent.ID)]
	b, knowsB := dependencies[v1alpha1.NodeID(on.ID)]
	if !knowsA || !knowsB || a.level != dependent.Wave || b.level != on.Wave {
		return true
	}
	return a.on[v1alpha1.NodeID(on.ID)]
}
