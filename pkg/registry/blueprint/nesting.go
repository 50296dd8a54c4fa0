package blueprint

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
)

// addOrigins tells the program of which exports its children's kinds are.
func (c *Compiler) addOrigins(ctx context.Context, program *engine.Program) error {
	if c.Origins == nil {
		return nil
	}
	origins, err := c.Origins(ctx, program)
	if err != nil {
		return registry.Unavailable(fmt.Sprintf("what workspace %s has bound can't be read", program.Export.Cluster), err)
	}
	for i := range program.Nodes {
		program.Nodes[i].Origin = origins[program.Nodes[i].ID]
	}
	return nil
}

// refuseCycle refuses a blueprint that would be composed of itself, at the resource that leads back to it.
func (o *Offering) refuseCycle(program *engine.Program, at func(v1alpha1.NodeID) *field.Path) error {
	err := o.Catalog.Cycle(program)
	var cycle *registry.CycleError
	if !errors.As(err, &cycle) {
		return nil
	}
	return invalid(program.Blueprint, field.ErrorList{field.Forbidden(at(cycle.Node), cycle.Error())})
}

// ensureInLoop looks after a stored blueprint that is part of a loop, which only several that were written at one
// time can have become. It is served, so that its instances can be read, changed and deleted; new ones are refused with
// the blueprint's condition. It is tried again until one of the blueprints has changed.
func (r *REST) ensureInLoop(ctx context.Context, stored *unstructured.Unstructured, program *engine.Program, cycle error) error {
	if err := r.offering.Serve(ctx, program); err != nil {
		r.holdUnserved(stored, err)
		return err
	}
	_, err := r.record(ctx, stored, failedStatus(v1alpha1.ConditionCompiled, v1alpha1.ReasonCycle, stored.GetGeneration(), cycle))
	return errors.Join(cycle, err)
}
