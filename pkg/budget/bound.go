package budget

import (
	"errors"
	"fmt"
	"slices"
)

// Bound is one limit on what a tenant may ask of the server.
type Bound struct {
	// Name is that of the flag, without dashes; or, for what can't be changed, of the bound.
	Name string
	// Fixed bounds have no flag: other bounds, or other software, rest on them.
	Fixed bool
	// Of says what is bounded, such as "resources of the blueprint".
	Of string
	// Unit is written behind the limit; empty for what is counted.
	Unit string
	// Default is the limit unless it is set.
	Default int
	// Most is what it can be set to; 0 if it can be set to anything.
	Most int
	// Why is the reason for the default.
	Why string
	// Answer is what whoever goes over it gets, such as 422.
	Answer string
}

var declared []*Bound

// define declares a bound.
func define(bound Bound) *Bound {
	declared = append(declared, &bound)
	return &bound
}

// All are the bounds, in the order of their declaration.
func All() []*Bound { return slices.Clone(declared) }

// named is how the bound is called in messages: as the flag that sets it, if there is one.
func (b *Bound) named() string {
	if b.Fixed {
		return b.Name
	}
	return "--" + b.Name
}

// Limits are the values that differ from the defaults. The zero value is the defaults. It must not be changed
// once it is in use.
type Limits map[*Bound]int

// Of is what is allowed.
func (l Limits) Of(b *Bound) int {
	if limit, ok := l[b]; ok {
		return limit
	}
	return b.Default
}

// Check fails with *Over if more is asked for than is allowed.
func (l Limits) Check(b *Bound, asked int) error {
	if asked <= l.Of(b) {
		return nil
	}
	return l.Exceeded(b, fmt.Sprint(asked))
}

// More is the error of what was stopped when it went over its limit: how much it would have been isn't known.
func (l Limits) More(b *Bound) error { return l.Exceeded(b, "more") }

// Exceeded is the error for what was asked for, in words.
func (l Limits) Exceeded(b *Bound, asked string) error {
	return &Over{Bound: b, Limit: l.Of(b), Asked: asked}
}

// Over says that somebody has asked for more than is allowed.
type Over struct {
	*Bound
	Limit int
	// Asked is what was asked for, in words.
	Asked string
}

// Prefix is how all messages begin that say that a bound was reached.
const Prefix = "over budget: "

// Error names what is bounded, what was asked for, the limit and the bound.
func (o *Over) Error() string {
	unit := ""
	if o.Unit != "" {
		unit = " " + o.Unit
	}
	return fmt.Sprintf("%s%s: %s, at most %d%s are allowed (%s)", Prefix, o.Of, o.Asked, o.Limit, unit, o.named())
}

// IsBusy says whether the bound is on what happens at one time, so that the same may be had a moment later.
func IsBusy(err error) bool {
	var over *Over
	return errors.As(err, &over) && over.Answer == Busy
}
