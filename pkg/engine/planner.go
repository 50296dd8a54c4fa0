package engine

import (
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// Plan says what the instance should consist of, given what is observed of it and what was read for its
// references. Objects in observed must be the instance's own (OwnedBy) or answers to dry-runs: expressions
// see their content.
//
// The instance needs name, namespace, uid, creationTimestamp and generation. It is not changed. A
// node that pends or fails holds back what depends on it and nothing else.
func (p *Program) Plan(instance *unstructured.Unstructured, consumer logicalcluster.Name, observed Observed, read Read) *Plan {
	plan := &Plan{Nodes: make([]NodePlan, len(p.Nodes))}
	for i := range p.Nodes {
		plan.Nodes[i].Node = &p.Nodes[i]
	}
	pass, err := p.Graph.Start(stamped(instance, consumer))
	if err != nil {
		for i := range plan.Nodes {
			plan.Nodes[i].decide(err)
		}
		plan.StatusError = err
		return plan
	}
	plan.pass = pass
	planner := planner{
		pass:     pass,
		naming:   naming{program: p, consumer: consumer, instance: instance},
		observed: observed,
		read:     read,
		claimed:  make(map[v1alpha1.ObjectKey]v1alpha1.NodeID),
		limits:   p.Limits,
	}
	for i := range plan.Nodes {
		planner.visit(&plan.Nodes[i])
	}
	plan.Status, plan.StatusWaiting, plan.StatusError = pass.Status()
	return plan
}

// Conditions evaluates the author's conditions, given krop's own. complete is false when some could
// not be evaluated yet; what they said before is then better kept. err says which ones failed.
func (p *Plan) Conditions(own []Condition) (conditions []Condition, complete bool, err error) {
	if p.pass == nil {
		return nil, false, p.StatusError
	}
	return p.pass.Conditions(own)
}

// Node is the plan of one node, nil if the program has none of this id.
func (p *Plan) Node(id v1alpha1.NodeID) *NodePlan {
	for i := range p.Nodes {
		if p.Nodes[i].ID == id {
			return &p.Nodes[i]
		}
	}
	return nil
}

// planner visits a program's nodes in order.
type planner struct {
	pass     Pass
	naming   naming
	observed Observed
	read     Read
	claimed  map[v1alpha1.ObjectKey]v1alpha1.NodeID
	// inventory is about how many bytes the children take that have been listed.
	inventory int
	limits    budget.Limits
}

func (p *planner) visit(node *NodePlan) {
	ignored, err := p.pass.Ignored(node.ID)
	switch {
	case err != nil:
		node.decide(err)
		return
	case ignored:
		node.Outcome = Ignored
		return
	case node.External:
		p.refer(node)
		return
	}
	objects, err := p.pass.Desired(node.ID)
	if err == nil {
		err = p.adopt(node, objects)
	}
	if err != nil {
		node.Children = nil
		node.decide(err)
		return
	}
	node.Outcome = Desired
	p.observe(node)
}

// adopt names and marks what a template rendered, in place: the pass keeps these objects, and must
// see them under the names that they exist by.
func (p *planner) adopt(node *NodePlan, objects []*unstructured.Unstructured) error {
	if err := p.checkCount(node, len(objects)); err != nil {
		return err
	}
	node.Children = make([]Child, 0, len(objects))
	for _, object := range objects {
		if err := p.identifiable(node, object); err != nil {
			return err
		}
		object.SetName(p.naming.child(node.Node, object.GetName()))
		key := v1alpha1.ObjectKey{
			Target:        node.Target,
			GroupResource: node.GVR.GroupResource(),
			Namespace:     object.GetNamespace(),
			Name:          object.GetName(),
		}
		if err := p.claim(node, key); err != nil {
			return err
		}
		p.naming.mark(node.Node, object)
		if err := p.checkSize(node, object); err != nil {
			return err
		}
		node.Children = append(node.Children, Child{Key: key, Object: object, Observed: p.observed[key]})
	}
	return nil
}

func (p *planner) identifiable(node *NodePlan, object *unstructured.Unstructured) error {
	switch {
	case object.GetName() == "":
		return &ExpressionError{Node: node.ID, Message: "metadata.name is empty"}
	case node.Namespaced && object.GetNamespace() == "":
		return &ExpressionError{Node: node.ID, Message: "metadata.namespace is empty"}
	default:
		return nil
	}
}

// claim refuses a second child of the same identity: two nodes would overwrite each other for ever.
func (p *planner) claim(node *NodePlan, key v1alpha1.ObjectKey) error {
	if other, taken := p.claimed[key]; taken {
		return &ExpressionError{Node: node.ID, Message: fmt.Sprintf(
			"renders %s %s on the %s plane, which resource %q of this instance renders too", key.GroupResource, objectName(key), key.Target, other)}
	}
	p.claimed[key] = node.ID
	return nil
}

func objectName(key v1alpha1.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// observe tells the pass which children exist, and asks whether they are ready.
func (p *planner) observe(node *NodePlan) {
	present := make([]*unstructured.Unstructured, 0, len(node.Children))
	for _, child := range node.Children {
		if child.Observed != nil {
			present = append(present, child.Observed)
		}
	}
	p.pass.Observe(node.ID, present)
	if len(present) == len(node.Children) {
		p.judge(node)
	}
}

// judge asks whether a node of which everything exists is ready.
func (p *planner) judge(node *NodePlan) {
	switch err := p.pass.Ready(node.ID); {
	case err == nil:
		node.Ready = true
	case errors.As(err, &node.Waiting):
		node.tellApart(p.pass.ReadyElements(node.ID))
	default:
		node.Err = expressionError(node.ID, err)
	}
}

// tellApart notes which objects of a list that isn't ready are.
func (n *NodePlan) tellApart(elements []error) {
	for i, err := range elements[:min(len(elements), len(n.Children))] {
		n.Children[i].Ready = err == nil
		errors.As(err, &n.Children[i].Waiting)
	}
}

// refer finds out what an external node reads, and whether that was read. It pends while the object isn't
// there; a selector that picks nothing gives an empty list.
func (p *planner) refer(node *NodePlan) {
	reference, err := p.pass.Reference(node.ID)
	if err != nil {
		node.decide(err)
		return
	}
	reference.Target, reference.GVR = node.Target, node.GVR
	node.Reference = reference
	reading, tried := p.read[reference.Key()]
	read := tried && reading.Failure == ""
	if node.Unreadable = reading.Failure; read {
		node.Found = reading.Objects
		p.pass.Observe(node.ID, node.Found)
	}
	if p.judge(node); !read || !node.Selects && len(node.Found) == 0 {
		node.Outcome = Pending
		return
	}
	node.Outcome = Desired
}

// decide makes the node Pending or Failed, by the kind of error.
func (n *NodePlan) decide(err error) {
	if errors.As(err, &n.Waiting) {
		n.Outcome = Pending
		return
	}
	n.Outcome = Failed
	n.Err = expressionError(n.ID, err)
}

func expressionError(id v1alpha1.NodeID, err error) *ExpressionError {
	var failure *ExpressionError
	if errors.As(err, &failure) {
		return failure
	}
	return &ExpressionError{Node: id, Message: err.Error()}
}
