package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
)

// plans measures the engine alone: a plan of the blueprint with five nodes.
func plans(context.Context, size) error {
	program, err := compileFives()
	if err != nil {
		return err
	}
	one := instance("Five", "one")
	one.SetUID("00000000-0000-0000-0000-000000000001")
	one.SetGeneration(1)
	if plan := program.Plan(one, "consumer", engine.Observed{}, nil); plan.Nodes[0].Outcome != engine.Desired {
		return fmt.Errorf("a plan says %s of node %s: %v", plan.Nodes[0].Outcome, plan.Nodes[0].ID, plan.Nodes[0].Err)
	}
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			program.Plan(one, "consumer", engine.Observed{}, nil)
		}
	})
	fmt.Printf("\nA plan of five nodes in the engine alone: %.1f µs (aim: under 200)\n", float64(result.NsPerOp())/1000)
	return nil
}

func compileFives() (*engine.Program, error) {
	for _, document := range strings.Split(blueprints, "\n---\n") {
		blueprint := &v1alpha1.ResourceGraphDefinition{}
		if err := yaml.UnmarshalStrict([]byte(document), blueprint); err != nil {
			return nil, fmt.Errorf("blueprint: %w", err)
		}
		if blueprint.Name != "fives" {
			continue
		}
		export := v1alpha1.ExportKey{Cluster: logicalcluster.Name("provider"), Name: fives.GroupResource().String()}
		program, errs := kro.Compile(blueprint, export, onlyConfigMaps{}, kro.Limits{})
		return program, errs.ToAggregate()
	}
	return nil, fmt.Errorf("there is no blueprint of five")
}

// onlyConfigMaps knows one kind.
type onlyConfigMaps struct{}

// Resolve implements kro.Schemas.
func (onlyConfigMaps) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	if gvk.Kind != "ConfigMap" {
		return kro.Kind{}, &kro.KindNotFoundError{Target: target, GVK: gvk}
	}
	text := spec.StringProperty()
	metadata := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"name": *text, "namespace": *text}}}
	return kro.Kind{GVR: configMaps, Namespaced: true, Schema: &spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"object"},
		Properties: map[string]spec.Schema{
			"apiVersion": *text, "kind": *text, "metadata": *metadata, "data": *spec.MapProperty(text),
		},
	}}}, nil
}

var _ kro.Schemas = onlyConfigMaps{}
