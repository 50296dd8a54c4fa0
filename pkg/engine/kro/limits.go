package kro

// Limits bound what a blueprint may ask of the server. The zero value of a field means its default.
type Limits struct {
	// Resources is how many resources a blueprint may have.
	Resources int
	// Collection is how many objects one forEach may give for an instance.
	Collection int
	// Dimensions is how many axes one forEach may have.
	Dimensions int
	// SchemaFields is how many fields the published kind may have, with all types put in.
	SchemaFields int
	// PlanCost is what all expressions of one plan may cost together; see ExpressionCost.
	PlanCost int
}

const (
	// DefaultResources: kro's largest examples have about 30; 10 times that still compiles in well
	// under a second.
	DefaultResources = 300
	// DefaultCollection is kro's own default.
	DefaultCollection = 1000
	// DefaultDimensions is kro's own default.
	DefaultDimensions = 10
	// DefaultPlanCost is about a second of one core, for as much as ten expressions at their limit.
	DefaultPlanCost = 10_000_000
)

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	if l.Resources == 0 {
		l.Resources = DefaultResources
	}
	if l.Collection == 0 {
		l.Collection = DefaultCollection
	}
	if l.Dimensions == 0 {
		l.Dimensions = DefaultDimensions
	}
	if l.SchemaFields == 0 {
		l.SchemaFields = DefaultSchemaFields
	}
	if l.PlanCost == 0 {
		l.PlanCost = DefaultPlanCost
	}
	return l
}
