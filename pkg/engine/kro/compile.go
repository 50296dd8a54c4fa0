package kro

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Compile makes a program of a blueprint, or says everything that is wrong with it, in a stable
// order. Errors of type field.ErrorTypeInternal are not the author's: a plane could not be asked.
func Compile(blueprint *v1alpha1.ResourceGraphDefinition, export v1alpha1.ExportKey, schemas Schemas, limits Limits) (*engine.Program, field.ErrorList) {
	return nil, field.ErrorList{field.InternalError(field.NewPath("spec"), errNotYet)}
}

var errNotYet = errors.New("the compiler is not finished yet")
