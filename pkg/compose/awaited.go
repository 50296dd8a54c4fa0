package compose

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// sampleName is that of objects that are only ever dry-run, to hear what an authorizer says.
const sampleName = "krop-permission-sample"

// awaitedDenials is the pending nodes of the consumer's plane that krop could not write, once what they wait
// for is there, for lack of an accepted claim: the consumer learns of it now, and not when the value arrives.
// Claims are for a whole workspace and say nothing of names, so that a sample of each resource tells.
func (w *work) awaitedDenials(ctx context.Context, plan *engine.Plan) []finding {
	tried := w.triedResources(plan)
	samples := map[schema.GroupResource]*engine.NodePlan{}
	var asked []*engine.NodePlan
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		resource := node.GVR.GroupResource()
		if awaited(node) && !tried[resource] && samples[resource] == nil {
			samples[resource] = node
			asked = append(asked, node)
		}
	}
	denied := map[schema.GroupResource]error{}
	for i, err := range each(ctx, asked, w.sample) {
		if _, is := plane.DeniedBy(err); is {
			denied[asked[i].GVR.GroupResource()] = err
		}
	}
	var findings []finding
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if err := denied[node.GVR.GroupResource()]; err != nil && awaited(node) {
			findings = append(findings, finding{node: node, key: keyOf(node), err: err})
		}
	}
	return findings
}

func awaited(node *engine.NodePlan) bool {
	return node.Outcome == engine.Pending && !node.External && node.Target == v1alpha1.TargetConsumer
}

// triedResources are those of the consumer's plane that a child was checked of by this call.
func (w *work) triedResources(plan *engine.Plan) map[schema.GroupResource]bool {
	tried := map[schema.GroupResource]bool{}
	for i := range plan.Nodes {
		for _, child := range plan.Nodes[i].Children {
			if _, checked := w.settled[child.Key]; checked && child.Key.Target == v1alpha1.TargetConsumer {
				tried[child.Key.GroupResource] = true
			}
		}
	}
	return tried
}

// sample dry-runs the creation of an object of the node's kind. Whether it is valid doesn't matter.
func (w *work) sample(ctx context.Context, node *engine.NodePlan) error {
	at, err := w.plane(ctx, node.Target)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(node.GVK)
	object.SetName(sampleName)
	if node.Namespaced {
		object.SetNamespace(w.request.Instance.GetNamespace())
	}
	options := w.writeOptions()
	options.DryRun = true
	_, err = at.Create(ctx, node.GVR, object, options)
	return err
}

// keyOf is what is known of the identity of a node's child before there is one.
func keyOf(node *engine.NodePlan) v1alpha1.ObjectKey {
	return v1alpha1.ObjectKey{Target: node.Target, GroupResource: node.GVR.GroupResource()}
}
