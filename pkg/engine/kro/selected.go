package kro

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/cel/conversion"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	kroschema "github.com/kubernetes-sigs/kro/pkg/graph/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// completeReferences gives external nodes what kro's graph lacks: where they are, and a readyWhen over what
// a selector picks. kro checks that against the list and evaluates it against each object, so that none
// can ever hold: it doesn't get to see it. Here it may read both.
func (c *compilation) completeReferences(g *graphProgram, schemas map[string]*spec.Schema) error {
	for _, r := range c.resources {
		n := g.nodes[v1alpha1.NodeID(r.ID)]
		if n.target = r.Target; !n.selects {
			continue
		}
		for _, text := range r.ReadyWhen {
			condition, err := selectionCondition(r.ID, text, schemas[r.ID])
			if err != nil {
				return fmt.Errorf("resource %q readyWhen: %w", r.ID, err)
			}
			n.ready = append(n.ready, condition)
		}
	}
	return nil
}

func selectionCondition(id, text string, kindSchema *spec.Schema) (*expression, error) {
	parsed := asExpression(text)
	if parsed == nil {
		return nil, errors.New("expected one expression in ${}")
	}
	env, _, err := krocel.TypedEnvironmentWithProvider(map[string]*spec.Schema{
		id: kroschema.NewCache().WrapAsList(kindSchema), graph.EachVarName: kindSchema,
	})
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(parsed.Original)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if !conversion.IsBoolOrOptionalBool(checked.OutputType()) {
		return nil, fmt.Errorf("expected bool, found %s", typeName(checked.OutputType()))
	}
	if parsed.Program, err = env.Program(checked); err != nil {
		return nil, err
	}
	parsed.References = []string{id}
	return newExpression(parsed), nil
}

// readsEach says whether the condition is one of each object, and not of the list.
func (e *expression) readsEach() bool {
	return slices.ContainsFunc(e.paths(), func(chain path) bool { return chain.root == graph.EachVarName })
}

// checkSelected evaluates the readyWhen of a selection: over the list, or over each object.
func (p *pass) checkSelected(n *node, s *state) error {
	for _, condition := range n.ready {
		if !condition.readsEach() {
			if err := p.holds(n, condition, &scope{pass: p}, nil); err != nil {
				return err
			}
			continue
		}
		for i, object := range s.observed {
			each := map[string]any{graph.EachVarName: n.view.value(object.Object)}
			if err := p.holds(n, condition, &scope{pass: p, local: each}, object); err != nil {
				return ofElement(i, err)
			}
		}
	}
	return nil
}

// ofElement says which element of a list lacks the field that is awaited, or isn't ready.
func ofElement(i int, err error) error {
	var waiting *engine.Waiting
	if !errors.As(err, &waiting) || strings.HasPrefix(waiting.Path, "[") {
		return err
	}
	numbered := *waiting
	index := fmt.Sprintf("[%d]", i)
	switch {
	case waiting.Path != "":
		numbered.Path = index + "." + waiting.Path
	case waiting.ReadyWhen:
		numbered.Element = index
	}
	return &numbered
}

// missing names the object that a reference doesn't find, and its plane.
func (n *node) missing(reference *engine.Reference) string {
	name := reference.Name
	if reference.Namespace != "" {
		name = reference.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s", n.target, n.kind, name)
}
