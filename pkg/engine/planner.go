package engine

import (
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
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
		if !node.External {
			p.naming.mark(node.Node, object)
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
	if node.External {
		return nil
	}
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
	if len(present) < len(node.Children) {
		return
	}
	switch err := p.pass.Ready(node.ID); {
	case err == nil:
		node.Ready = true
	case errors.As(err, &node.Waiting):
	default:
		node.Err = expressionError(node.ID, err)
	}
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
