package kro

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	krolibrary "github.com/kubernetes-sigs/kro/pkg/cel/library"
	"github.com/kubernetes-sigs/kro/pkg/graph"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// reservedConditions are krop's own. An author's conditions of these types are refused.
var reservedConditions = map[string]bool{
	v1alpha1.ConditionReady: true, v1alpha1.ConditionProgressing: true, v1alpha1.ConditionSynced: true,
}

// kroConditions are the types that kro lets an author read from the instance, and which of krop's
// says the same: that krop holds the instance, that its children could be computed, that they are ready.
var kroConditions = map[string]string{
	"InstanceManaged": v1alpha1.ConditionSynced,
	"GraphResolved":   v1alpha1.ConditionSynced,
	"ResourcesReady":  v1alpha1.ConditionReady,
}

// Conditions implements engine.Pass.
func (p *pass) Conditions(own []engine.Condition) (conditions []engine.Condition, complete bool, err error) {
	err = p.evaluate("", func() error {
		conditions, complete, err = p.authored(own)
		return err
	})
	return conditions, complete, err
}

func (p *pass) authored(own []engine.Condition) ([]engine.Condition, bool, error) {
	scope := &scope{pass: p, local: map[string]any{
		graph.SchemaVarName:       p.withConditions(own),
		krolibrary.RuntimeVarName: krolibrary.RuntimeSingleton,
	}}
	var out []engine.Condition
	var failures []error
	complete := true
	for _, e := range p.graph.conditions {
		conditions, err := p.condition(e, scope)
		var waiting *engine.Waiting
		switch {
		case errors.As(err, &waiting):
			complete = false
		case err != nil:
			complete = false
			failures = append(failures, err)
		}
		out = append(out, conditions...)
	}
	kept, duplicates := unique(out)
	for _, name := range duplicates {
		failures = append(failures, &engine.ExpressionError{Message: fmt.Sprintf("condition type %q is reserved or given more than once", name)})
	}
	return kept, complete && len(duplicates) == 0, errors.Join(failures...)
}

func (p *pass) condition(e *expression, scope *scope) ([]engine.Condition, error) {
	result, err := e.eval(scope)
	if err != nil {
		return nil, p.failure("", e, scope, err)
	}
	if one, ok := asCondition(result); ok {
		return []engine.Condition{one}, nil
	}
	list, ok := result.(traits.Lister)
	if !ok {
		return nil, p.failed("", e, fmt.Errorf("it gives %s, expected a condition or a list of conditions", result.Type().TypeName()))
	}
	var out []engine.Condition
	for it := list.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		one, ok := asCondition(element)
		if !ok {
			return nil, p.failed("", e, fmt.Errorf("it gives a list with %s, expected conditions", element.Type().TypeName()))
		}
		if out = append(out, one); len(out) > maxConditions {
			return nil, p.failed("", e, fmt.Errorf("it gives more than %d conditions", maxConditions))
		}
	}
	return out, nil
}

// maxConditions is how many conditions one expression may give: people read them.
const maxConditions = 100

func asCondition(value ref.Val) (engine.Condition, bool) {
	c, ok := value.Value().(*krolibrary.Condition)
	if !ok {
		return engine.Condition{}, false
	}
	return engine.Condition{Type: c.ConditionType, Status: c.Status, Reason: c.Reason, Message: c.Message}, true
}

// withConditions is the instance with krop's own conditions, which only conditions may read.
func (p *pass) withConditions(own []engine.Condition) any {
	object := withoutStatus(p.instance.Object)
	list := make([]any, 0, 2*len(own))
	for _, c := range own {
		list = append(list, asMap(c, c.Type))
		for name, same := range kroConditions {
			if same == c.Type {
				list = append(list, asMap(c, name))
			}
		}
	}
	object["status"] = map[string]any{"conditions": list}
	return p.graph.instance.value(object)
}

func asMap(c engine.Condition, name string) map[string]any {
	return map[string]any{"type": name, "status": c.Status, "reason": c.Reason, "message": c.Message}
}

// unique leaves out conditions of reserved types, and all of those that share a type.
func unique(conditions []engine.Condition) (kept []engine.Condition, refused []string) {
	count := make(map[string]int, len(conditions))
	for _, c := range conditions {
		count[c.Type]++
	}
	for _, c := range conditions {
		switch {
		case count[c.Type] == 1 && !reservedConditions[c.Type]:
			kept = append(kept, c)
		case count[c.Type] > 0:
			refused = append(refused, c.Type)
			count[c.Type] = 0
		}
	}
	return kept, refused
}
