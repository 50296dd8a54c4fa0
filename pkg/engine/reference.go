package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Reference is what an external node reads: one object by name, or those that a selector picks.
type Reference struct {
	Target v1alpha1.Target
	GVR    schema.GroupVersionResource
	// Namespace of the object. Empty for cluster-scoped kinds and, with a selector, for all namespaces.
	Namespace string
	// Name of the object, empty with a selector.
	Name string
	// Selector of the objects, nil with a name.
	Selector labels.Selector
}

// Matches says whether the object with this namespace, name and labels is, or may be, what is referred
// to. Labels that aren't known are nil: the object may have any.
func (r Reference) Matches(namespace, name string, of labels.Labels) bool {
	switch {
	case r.Namespace != "" && r.Namespace != namespace:
		return false
	case r.Selector == nil:
		return r.Namespace == namespace && r.Name == name
	default:
		return of == nil || r.Selector.Matches(of)
	}
}

// Object is the identity of the object that the reference names; it has no name if it selects.
func (r Reference) Object() v1alpha1.ObjectKey {
	return v1alpha1.ObjectKey{Target: r.Target, GroupResource: r.GVR.GroupResource(), Namespace: r.Namespace, Name: r.Name}
}

// ReferenceKey tells references apart. It is comparable.
type ReferenceKey struct {
	v1alpha1.ObjectKey
	version  string
	selector string
}

// Key is the same for references that read the same.
func (r Reference) Key() ReferenceKey {
	key := ReferenceKey{ObjectKey: r.Object(), version: r.GVR.Version}
	if r.Selector != nil {
		key.selector = r.Selector.String()
	}
	return key
}

// Reading is what came of reading a reference.
type Reading struct {
	// Objects are those that there are, in the order that expressions see them in. None are read of one
	// that names an object which doesn't exist.
	Objects []*unstructured.Unstructured
	// Failure says why it could not be read, in words for the instance's user; empty if it could.
	Failure string
}

// Read is what was read for references. One that is absent has not been read yet.
type Read map[ReferenceKey]Reading

// referenceRows are what is known of the plan's external nodes, as rows. The inventory has none of them.
func referenceRows(plan *Plan) []v1alpha1.ComposedResource {
	if plan == nil {
		return nil
	}
	var rows []v1alpha1.ComposedResource
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if !node.External {
			continue
		}
		row := plan.row(node)
		if node.Reference != nil {
			row.Namespace, row.Name = node.Reference.Namespace, node.Reference.Name
		}
		switch {
		case node.Unreadable != "":
			row.State, row.WaitingFor, row.Message = v1alpha1.StateFailed, "", Truncated("can't be read: "+node.Unreadable)
		case node.Outcome == Desired:
			row.State = observedState(node)
		}
		rows = append(rows, row)
	}
	return rows
}

// References are what the plan's external nodes read, as far as it is known.
func (p *Plan) References() []Reference {
	var references []Reference
	for i := range p.Nodes {
		if reference := p.Nodes[i].Reference; reference != nil {
			references = append(references, *reference)
		}
	}
	return references
}
