package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/gc"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/publish"
)

// followKinds makes what notices changes of kinds. A workspace has its kinds from definitions and from bindings, the host
// from definitions; that a server joins or leaves which a host has aggregated is an event of neither.
func followKinds(planes *plane.Set, host bool) *gc.Kinds {
	resources := map[v1alpha1.Target][]schema.GroupVersionResource{
		v1alpha1.TargetProvider: {gc.CustomResourceDefinitions, publish.Bound()},
	}
	if host {
		resources[v1alpha1.TargetHost] = []schema.GroupVersionResource{gc.CustomResourceDefinitions}
	}
	return gc.NewKinds(planes, resources)
}
