package kro

import (
	"go.opendefense.cloud/krop/pkg/budget"
)

// Limits bound what a blueprint may ask of the server.
type Limits = budget.Limits

// maxValue bounds, in bytes and in elements, what one call or one expression may give.
var maxValue = budget.ValueBytes.Default

// manyStates is the price of a regular expression that must not even be made.
var manyStates = maxValue + 2

// tooLarge is the error of what would cost more than any call may.
func tooLarge(cost int) error {
	if cost == manyStates {
		return Limits{}.More(budget.PatternStates)
	}
	return Limits{}.More(budget.ValueBytes)
}
