package kro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

const (
	namePath      = "metadata.name"
	namespacePath = "metadata.namespace"
	selectorPath  = "metadata.selector"
)

// Reference implements engine.Pass.
func (p *pass) Reference(id v1alpha1.NodeID) (*engine.Reference, error) {
	s := p.state(id)
	if s.desired == nil {
		s.desired = &answer{}
		s.desired.err = p.evaluate(id, func() (err error) {
			s.reference, err = p.refer(id)
			return err
		})
	}
	if s.desired.err != nil {
		return nil, s.desired.err
	}
	reference := *s.reference
	return &reference, nil
}

// refer renders an externalRef, which looks like an object with a selector in the place of the name.
func (p *pass) refer(id v1alpha1.NodeID) (*engine.Reference, error) {
	objects, err := p.render(id)
	if err != nil {
		return nil, err
	}
	n, object := p.graph.nodes[id], objects[0]
	reference := &engine.Reference{Namespace: object.GetNamespace(), Name: object.GetName()}
	if problems := content.IsPathSegmentName(reference.Namespace); len(problems) > 0 {
		return nil, p.misplaced(n, namespacePath, fmt.Errorf("%q %s", reference.Namespace, strings.Join(problems, ", ")))
	}
	if n.selects {
		if reference.Selector, err = selectorOf(object.Object); err != nil {
			return nil, p.misplaced(n, selectorPath, err)
		}
		return reference, nil
	}
	if reference.Name == "" {
		return nil, p.misplaced(n, namePath, errors.New("is empty"))
	}
	if problems := content.IsPathSegmentName(reference.Name); len(problems) > 0 {
		return nil, p.misplaced(n, namePath, fmt.Errorf("%q %s", reference.Name, strings.Join(problems, ", ")))
	}
	return reference, nil
}

// selectorOf is the label selector of a rendered reference. Without one, since its expression has left
// it out, everything is selected, as in kro. Unknown fields are refused: what has a matchLabel and
// nothing else would select everything too.
func selectorOf(object map[string]any) (labels.Selector, error) {
	metadata, _ := object["metadata"].(map[string]any)
	value, found := metadata["selector"]
	if !found {
		return labels.Everything(), nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		return nil, errors.New("is null, expected a label selector")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	selector := &metav1.LabelSelector{}
	if err := decoder.Decode(selector); err != nil {
		return nil, fmt.Errorf("is no label selector: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// misplaced is the error of a field of a reference, with what its expressions read.
func (p *pass) misplaced(n *node, path string, err error) error {
	failure := &engine.ExpressionError{Node: n.id, Message: path + ": " + err.Error(), Cause: err}
	var expressions []string
	for _, field := range n.template.fields {
		if field.path == path || strings.HasPrefix(field.path, path+".") || strings.HasPrefix(field.path, path+"[") {
			expressions = append(expressions, field.expression.source)
			failure.Fields = append(failure.Fields, field.expression.instanceFields(n)...)
		}
	}
	if len(expressions) == 1 {
		failure.Expression = expressions[0]
	}
	slices.Sort(failure.Fields)
	failure.Fields = slices.Compact(failure.Fields)
	return failure
}
