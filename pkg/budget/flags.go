package budget

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags adds a flag for each bound that can be set.
func (l Limits) AddFlags(flags *pflag.FlagSet) {
	for _, bound := range declared {
		if !bound.Fixed {
			flags.Var(value{limits: l, bound: bound}, bound.Name, bound.usage())
		}
	}
}

func (b *Bound) usage() string {
	unit := ""
	if b.Unit != "" {
		unit = ", in " + b.Unit
	}
	return fmt.Sprintf("%s%s%s. More is answered with %s. The default: %s.", strings.ToUpper(b.Of[:1]), b.Of[1:], unit, b.Answer, b.Why)
}

// Validate says what is wrong with limits that were set, one error each.
func (l Limits) Validate() []error {
	var problems []error
	for _, bound := range declared {
		if l.Of(bound) <= 0 {
			problems = append(problems, fmt.Errorf("%s must be positive", bound.named()))
		}
		if most := bound.Most; most > 0 && l.Of(bound) > most {
			problems = append(problems, fmt.Errorf("%s must be at most %d: %s", bound.named(), most, bound.Why))
		}
	}
	return problems
}

// value is one limit as a flag.
type value struct {
	limits Limits
	bound  *Bound
}

var _ pflag.Value = value{}

// String implements pflag.Value.
func (v value) String() string {
	if v.bound == nil { // pflag asks the zero value too
		return ""
	}
	return strconv.Itoa(v.limits.Of(v.bound))
}

// Set implements pflag.Value.
func (v value) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	v.limits[v.bound] = number
	return nil
}

// Type implements pflag.Value.
func (v value) Type() string { return "int" }
