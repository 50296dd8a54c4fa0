package kro

import (
	"go.opendefense.cloud/krop/pkg/budget"
)

// Limits bound what a blueprint may ask of the server.
type Limits = budget.Limits

// maxValue bounds, in bytes and in elements, what one call or one expression may give.
var maxValue = budget.ValueBytes.Default

// tooLarge is the error of what would work on more than maxValue.
func tooLarge() error { return Limits{}.More(budget.ValueBytes) }
