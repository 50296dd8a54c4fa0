package blueprint

import (
	"context"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// examine compiles the blueprint that is about to be stored (in place of old, if that isn't nil) and checks all else
// that has to hold. One check doesn't wait for another: an author who has repaired everything that the answer
// names is through.
func (w *write) examine(ctx context.Context, object, old *unstructured.Unstructured, blueprint *v1alpha1.ResourceGraphDefinition) (*Compiled, error) {
	compiled, refused := w.compile(ctx, blueprint)
	program, fields, err := w.known(blueprint, compiled, refused)
	if err != nil {
		return nil, err
	}
	at := placesIn(blueprint)
	found := []error{
		refused,
		w.checkCompatible(ctx, old, object, fields),
		w.rest.offering.refuseCycle(program, at),
	}
	if refused == nil {
		found = append(found, w.rest.offering.checkPublishing(ctx, program))
	}
	found = append(found, w.rest.offering.CheckRights(ctx, program, at))
	return compiled, together(blueprint.Name, found)
}

// known is the program and the fields of the kind, as far as a blueprint that has been refused has them.
func (w *write) known(blueprint *v1alpha1.ResourceGraphDefinition, compiled *Compiled, refused error) (*engine.Program, map[string]*apiextensionsv1.JSONSchemaProps, error) {
	if refused == nil {
		return compiled.Program, fieldsOf(compiled.Program.CRD), nil
	}
	var why *refusal
	if !errors.As(refused, &why) {
		return nil, nil, refused
	}
	return why.outline, w.rest.writtenFields(blueprint), nil
}
