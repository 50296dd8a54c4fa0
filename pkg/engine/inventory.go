package engine

import (
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// maxMessage is how many bytes of a message are stored: enough to act on, and small against etcd's
// limit of an object even with a thousand failing children.
const maxMessage = 1024

// Rows is the inventory that goes with the plan: a row per child, and one without a name for each
// node that has none. Rows of children that the plan doesn't speak of stay, until whoever has seen
// that a child is gone takes its row out. UIDs are the observed ones, or else the known ones.
//
// State is what the plan knows: Pending, Ignored, Failed, Applied (observed) or Ready, and Deleting
// for children that are Stale. External nodes have no rows: nothing of theirs is ever deleted.
func Rows(plan *Plan, previous []v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	known := make(map[v1alpha1.ObjectKey]v1alpha1.ComposedResource, len(previous))
	for _, row := range previous {
		if row.Name != "" {
			known[row.Key()] = row
		}
	}
	rows := make([]v1alpha1.ComposedResource, 0, len(previous)+len(plan.Nodes))
	wanted := wantedKeys(plan)
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if node.External {
			continue
		}
		rows = append(rows, plan.childRows(node, known)...)
		earlier := earlierRows(plan, node, previous, wanted)
		if len(node.Children)+len(earlier) == 0 {
			rows = append(rows, plan.row(node))
		}
		rows = append(rows, earlier...)
	}
	return append(rows, rowsOfNoNode(plan, previous, wanted)...)
}

func wantedKeys(plan *Plan) map[v1alpha1.ObjectKey]bool {
	wanted := make(map[v1alpha1.ObjectKey]bool)
	for i := range plan.Nodes {
		for _, child := range plan.Nodes[i].Children {
			wanted[child.Key] = true
		}
	}
	return wanted
}

func (p *Plan) childRows(node *NodePlan, known map[v1alpha1.ObjectKey]v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	rows := make([]v1alpha1.ComposedResource, 0, len(node.Children))
	for _, child := range node.Children {
		row := p.row(node)
		row.Namespace, row.Name = child.Key.Namespace, child.Key.Name
		row.UID = known[child.Key].UID
		if child.Observed != nil {
			if uid := child.Observed.GetUID(); uid != "" {
				row.UID = uid
			}
			row.State = observedState(node)
			p.alone(&row, child)
		} else {
			row.Message = NotWrittenYet
		}
		rows = append(rows, row)
	}
	return rows
}

// NotWrittenYet is what is said of children that are to be written next.
const NotWrittenYet = "not written yet"

func observedState(node *NodePlan) v1alpha1.State {
	switch {
	case node.Err != nil:
		return v1alpha1.StateFailed
	case node.Ready:
		return v1alpha1.StateReady
	default:
		return v1alpha1.StateApplied
	}
}

// alone says of one object of a list what isn't so of all.
func (p *Plan) alone(row *v1alpha1.ComposedResource, child Child) {
	switch {
	case child.Ready:
		row.State, row.WaitingFor, row.Message = v1alpha1.StateReady, "", ""
	case child.Waiting != nil:
		row.WaitingFor, row.Message = Truncated(child.Waiting.String()), Truncated(p.Explain(child.Waiting))
	}
}

// earlierRows are the node's named rows that none of its children has now.
func earlierRows(plan *Plan, node *NodePlan, previous []v1alpha1.ComposedResource, wanted map[v1alpha1.ObjectKey]bool) []v1alpha1.ComposedResource {
	var rows []v1alpha1.ComposedResource
	for _, row := range previous {
		if row.Name == "" || wanted[row.Key()] || v1alpha1.NodeID(row.ID) != node.ID {
			continue
		}
		if stale(plan, row, wanted) {
			rows = append(rows, deleting(row))
			continue
		}
		current := plan.row(node)
		row.State, row.WaitingFor, row.Message = current.State, current.WaitingFor, current.Message
		rows = append(rows, row)
	}
	return rows
}

// rowsOfNoNode are the named rows whose node is no longer in the program, or is External by now.
func rowsOfNoNode(plan *Plan, previous []v1alpha1.ComposedResource, wanted map[v1alpha1.ObjectKey]bool) []v1alpha1.ComposedResource {
	var rows []v1alpha1.ComposedResource
	for _, row := range previous {
		if row.Name == "" || wanted[row.Key()] || writer(plan, row) != nil {
			continue
		}
		if stale(plan, row, wanted) {
			row = deleting(row)
		}
		rows = append(rows, row)
	}
	return rows
}

func deleting(row v1alpha1.ComposedResource) v1alpha1.ComposedResource {
	row.State, row.WaitingFor = v1alpha1.StateDeleting, ""
	row.Message = "no longer part of the instance"
	return row
}

// row is what is known of the node itself.
func (p *Plan) row(n *NodePlan) v1alpha1.ComposedResource {
	row := v1alpha1.ComposedResource{
		ID:             string(n.ID),
		Target:         n.Target,
		APIVersion:     n.GVK.GroupVersion().String(),
		Kind:           n.GVK.Kind,
		Resource:       n.GVR.Resource,
		State:          v1alpha1.StatePending,
		DeletionPolicy: n.DeletionPolicy,
		Wave:           n.Level,
	}
	switch n.Outcome {
	case Ignored:
		row.State = v1alpha1.StateIgnored
	case Failed:
		row.State = v1alpha1.StateFailed
	case Desired:
		if n.Ready && len(n.Children) == 0 {
			row.State, row.Message = v1alpha1.StateReady, "an empty list: no children"
		}
	}
	if n.Waiting != nil {
		row.WaitingFor, row.Message = Truncated(n.Waiting.String()), Truncated(p.Explain(n.Waiting))
	}
	if n.Err != nil {
		row.Message = Truncated(n.failure()) // the row itself says which node it is about
	}
	return row
}

// Truncated is what is stored of a message: its beginning and its end.
func Truncated(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	head, tail := budget.Ends(message, maxMessage)
	return head + "…" + tail
}

// Stale is the children that the plan has decided against: their node is Desired or Ignored and
// doesn't want them, or it is no longer in the program and no undecided node may turn out to want
// them. Rows without a name are never stale: nothing is there to be deleted.
func Stale(plan *Plan, rows []v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	wanted := wantedKeys(plan)
	var out []v1alpha1.ComposedResource
	for _, row := range rows {
		if stale(plan, row, wanted) {
			out = append(out, row)
		}
	}
	return out
}

func stale(plan *Plan, row v1alpha1.ComposedResource, wanted map[v1alpha1.ObjectKey]bool) bool {
	if row.Name == "" || wanted[row.Key()] {
		return false
	}
	if node := writer(plan, row); node != nil {
		return node.Outcome == Desired || node.Outcome == Ignored
	}
	for i := range plan.Nodes {
		if node := &plan.Nodes[i]; node.undecided() && node.couldRender(row) {
			return false
		}
	}
	return true
}

// writer is the node that writes the row's child, nil if the program has none of that id any more.
func writer(plan *Plan, row v1alpha1.ComposedResource) *NodePlan {
	if node := plan.Node(v1alpha1.NodeID(row.ID)); node != nil && !node.External {
		return node
	}
	return nil
}

func (n *NodePlan) undecided() bool { return n.Outcome == Pending || n.Outcome == Failed }

func (n *NodePlan) couldRender(row v1alpha1.ComposedResource) bool {
	return !n.External && n.Target == row.Target && n.GVR.GroupResource() == row.Key().GroupResource
}

// TeardownWave is the children that may be deleted now: the named rows of the highest wave. What
// they depended on is of lower waves, and has to stay until they are gone.
func TeardownWave(rows []v1alpha1.ComposedResource) []v1alpha1.ComposedResource {
	var wave []v1alpha1.ComposedResource
	for _, row := range rows {
		switch {
		case row.Name == "":
		case len(wave) == 0 || row.Wave > wave[0].Wave:
			wave = []v1alpha1.ComposedResource{row}
		case row.Wave == wave[0].Wave:
			wave = append(wave, row)
		}
	}
	return wave
}
