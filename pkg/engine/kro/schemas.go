package kro

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Schemas knows the kinds that are served on each plane.
type Schemas interface {
	// Resolve returns the kind as the target's plane serves it. It fails with *KindNotFoundError if
	// the plane doesn't serve it, and with *NoPlaneError if krop has no such plane; any other error means that
	// it isn't known.
	Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (Kind, error)
}

// Kind is a kind that children can have.
type Kind struct {
	GVR        schema.GroupVersionResource
	Namespaced bool
	// Schema is the kind's OpenAPI schema with all references resolved. It is not changed.
	Schema *spec.Schema
}

// KindNotFoundError says that a plane doesn't serve a kind.
type KindNotFoundError struct {
	Target v1alpha1.Target
	GVK    schema.GroupVersionKind
}

// Error names kind and plane, and what makes the plane serve it.
func (e *KindNotFoundError) Error() string {
	return fmt.Sprintf("the %s plane serves no kind %s in %s: %s", e.Target, e.GVK.Kind, e.GVK.GroupVersion(), kindRemedies[e.Target])
}

// kindRemedies say how a plane comes to serve a kind. That of consumers is known from the blueprint's workspace.
var kindRemedies = map[v1alpha1.Target]string{
	v1alpha1.TargetConsumer: "check the spelling, or bind the APIExport that offers it in the blueprint's workspace",
	v1alpha1.TargetProvider: "check the spelling, bind the APIExport that offers it, or apply its CustomResourceDefinition, in the blueprint's workspace",
	v1alpha1.TargetHost:     "check the spelling, or apply its CustomResourceDefinition there",
}

// NoPlaneError says that krop was started without the target's plane.
type NoPlaneError struct {
	Target v1alpha1.Target
	// Remedy is what its administrator can do about it.
	Remedy string
}

// Error names plane and remedy.
func (e *NoPlaneError) Error() string {
	return fmt.Sprintf("krop has no %s plane: %s", e.Target, e.Remedy)
}
