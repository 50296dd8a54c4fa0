package kro

import (
	"errors"

	"github.com/kubernetes-sigs/kro/pkg/cel/sentinels"
	"github.com/kubernetes-sigs/kro/pkg/graph/fieldpath"
	"k8s.io/apimachinery/pkg/runtime"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Status implements engine.Pass.
func (p *pass) Status() (fields map[string]any, pending []*engine.Waiting, err error) {
	err = p.evaluate("", func() error {
		fields, pending, err = p.projected()
		return err
	})
	return fields, pending, err
}

func (p *pass) projected() (map[string]any, []*engine.Waiting, error) {
	object := runtime.DeepCopyJSON(p.graph.status.object)
	var pending []*engine.Waiting
	var failures []error
	for _, field := range p.graph.status.fields {
		value, err := p.statusValue(field)
		if err == nil {
			err = put(object, field.segments, value)
		}
		if err == nil {
			continue
		}
		remove(object, field.segments)
		var waiting *engine.Waiting
		switch {
		case errors.As(err, &waiting):
			pending = append(pending, waiting)
		case !errors.Is(err, errIgnored):
			failures = append(failures, err)
		}
	}
	status, ok := withoutHoles(object["status"]).(map[string]any)
	if !ok {
		status = map[string]any{}
	}
	return status, distinct(pending), errors.Join(failures...)
}

// errIgnored says that a status field reads a resource that isn't part of this instance. The field is
// left out, and nobody waits for it.
var errIgnored = errors.New("reads an ignored resource")

func (p *pass) statusValue(field templateField) (any, error) {
	for _, name := range field.expression.references {
		id := v1alpha1.NodeID(name)
		if s := p.states[id]; s != nil && s.ignored != nil && s.ignored.yes {
			return nil, errIgnored
		}
	}
	if err := p.mayProject(); err != nil {
		return nil, p.failed("", field.expression, err)
	}
	scope := &scope{pass: p}
	result, err := field.expression.eval(scope)
	if err != nil {
		return nil, p.failure("", field.expression, scope, err)
	}
	value, size, err := sized(result, sentinels.Omit{})
	if err == nil {
		err = p.meter.project(size)
	}
	if err != nil {
		return nil, p.failed("", field.expression, err)
	}
	return value, nil
}

// mayProject fails when there is no time or no room for another field of the status.
func (p *pass) mayProject() error {
	if p.timedOut() {
		return p.late()
	}
	return p.meter.project(0)
}

// hole stands for a value that is left out.
type hole struct{}

func remove(object map[string]any, segments []fieldpath.Segment) {
	// The path is the template's own, so that there is a place for the hole.
	_ = put(object, segments, hole{})
}

// withoutHoles takes out fields that are left out, objects that have no others, and lists with such
// elements: without one of them, the others would change their places.
func withoutHoles(value any) any {
	switch v := value.(type) {
	case map[string]any:
		before := len(v)
		for key, element := range v {
			filled := withoutHoles(element)
			if _, left := filled.(hole); left {
				delete(v, key)
				continue
			}
			v[key] = filled
		}
		if before > 0 && len(v) == 0 {
			return hole{}
		}
		return v
	case []any:
		for i, element := range v {
			filled := withoutHoles(element)
			if _, left := filled.(hole); left {
				return hole{}
			}
			v[i] = filled
		}
		return v
	case sentinels.Omit:
		return hole{}
	default:
		return value
	}
}

// distinct drops what reads the same, and keeps the order.
func distinct(pending []*engine.Waiting) []*engine.Waiting {
	seen := make(map[string]bool, len(pending))
	var out []*engine.Waiting
	for _, waiting := range pending {
		if text := waiting.String(); !seen[text] {
			seen[text] = true
			out = append(out, waiting)
		}
	}
	return out
}
