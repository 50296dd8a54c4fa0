package budget

// What expressions may cost. A unit is a call, or ten bytes or one element that a call has to look at: about a tenth of
// a microsecond.
var (
	ExpressionCost = define(Bound{Name: "max-expression-cost", Of: "cost of evaluating the expression", Unit: "units", Default: 1_000_000, Answer: Invalid,
		Why: "about a tenth of a second of one core; a unit is a call, or ten bytes that a call looks at"})
	PlanCost = define(Bound{Name: "max-plan-cost", Of: "cost of evaluating all expressions of the instance", Unit: "units", Default: 10_000_000, Answer: Invalid,
		Why: "about a second of one core, for as much as ten expressions at their limit"})
	ValueBytes = define(Bound{Name: "maxValue", Fixed: true, Of: "size of what a call or an expression works on", Unit: "bytes", Default: 4 << 20, Answer: Invalid,
		Why: "more than etcd lets any object have"})
	PatternStates = define(Bound{Name: "maxPatternStates", Fixed: true, Of: "states of a regular expression, or of those of a schema together", Default: 10_000, Answer: Invalid,
		Why: "each is some 200 bytes of memory, and may be a step for every character that is matched"})
	PatternSteps = define(Bound{Name: "maxPatternSteps", Fixed: true, Of: "steps of the regular expressions in the schema, one for each state and character", Default: 50_000_000, Answer: Invalid,
		Why: "about a second of one core; nothing ends a match that has begun, and 10,000 states take minutes for the largest text"})
	ValidationSeconds = define(Bound{Name: "validationTime", Fixed: true, Of: "time to validate the instance", Unit: "seconds", Default: 5, Answer: Invalid,
		Why: "Kubernetes' libraries count what a schema's rules cost, and allow for some seconds; this is for what they underestimate"})
	NodeSeconds = define(Bound{Name: "nodeTime", Fixed: true, Of: "time to evaluate the expressions of one resource", Unit: "seconds", Default: 2, Answer: Invalid,
		Why: "costs stop them long before; this is for work that they underestimate"})
	PlanSeconds = define(Bound{Name: "planTime", Fixed: true, Of: "time to evaluate all expressions of the instance", Unit: "seconds", Default: 5, Answer: Invalid,
		Why: "the same for an instance of many resources: a plan is made several times in a write, which has 25 seconds"})
)

// What an instance may be, and be composed of.
var (
	ForEachItems = define(Bound{Name: "max-foreach-items", Of: "objects of a forEach", Default: 1000, Answer: Invalid,
		Why: "kro's own limit"})
	SelectedObjects = define(Bound{Name: "max-selected-objects", Of: "objects that a selector of an externalRef reads", Default: 1000, Answer: Invalid,
		Why: "as many as a forEach over them may make"})
	SelectedBytes = define(Bound{Name: "maxSelectedBytes", Fixed: true, Of: "size of the objects that a selector of an externalRef reads", Unit: "bytes", Default: 8 << 20, Answer: Invalid,
		Why: "room for a thousand of 8 kB, at some ten times that in memory; whoever may write objects on a plane decides how large they are"})
	Children = define(Bound{Name: "max-children", Of: "children of the instance", Default: 1500, Answer: Invalid,
		Why: "the largest forEach and half as much again; all are listed in the instance's status, at some 350 bytes each"})
	InventoryBytes = define(Bound{Name: "maxInventoryBytes", Fixed: true, Of: "size of the inventory of the instance's children", Unit: "bytes", Default: 512 << 10, Answer: Invalid,
		Why: "the inventory is stored before children are written, and must never fail to fit beside the largest instance"})
	ChildBytes = define(Bound{Name: "max-child-bytes", Of: "size of a child", Unit: "bytes", Default: 1 << 20, Answer: Invalid,
		Why: "API servers store objects in etcd, which takes 1.5 MiB; managed fields and the controller's status come on top"})
	RenderedBytes = define(Bound{Name: "max-rendered-bytes", Of: "size of all children of the instance together", Unit: "bytes", Default: 8 << 20, Answer: Invalid,
		Why: "all of them are in memory while an instance is composed, at some five times their size"})
	RequestBytes = define(Bound{Name: "maxRequestBytes", Fixed: true, Of: "size of the request", Unit: "bytes", Default: 3 << 20, Answer: TooLarge,
		Why: "that of kube-apiserver: etcd takes 1.5 MiB, and JSON patches may be larger than what they make"})
	Depth = define(Bound{Name: "maxDepth", Fixed: true, Of: "depth of the object", Unit: "levels", Default: 100, Answer: Invalid,
		Why: "owners of fields are recorded along the path to each; and what is nested some thousand times could be stored, but not read again"})
	Nesting = define(Bound{Name: "maxNesting", Fixed: true, Of: "depth of the instance in other instances", Unit: "levels", Default: 8, Answer: Invalid,
		Why: "offerings are built of a few layers; blueprints that are composed of each other in a loop are refused, and this stops one that came about all the same"})
	Values = define(Bound{Name: "max-object-values", Of: "values in the object", Default: 20_000, Answer: TooLarge,
		Why: "each is looked at by a dozen steps from decoding to storing, some 5 µs of a core in all; 300 resources with 60 values each"})
	InstanceBytes = define(Bound{Name: "max-instance-bytes", Of: "size of the instance without its status", Unit: "bytes", Default: 768 << 10, Most: 896 << 10, Answer: TooLarge,
		Why: "half of what etcd takes, so that the other half is there for inventory and status"})
	StoredBytes = define(Bound{Name: "maxStoredBytes", Fixed: true, Of: "size of the object with its status", Unit: "bytes", Default: 1536<<10 - 64<<10, Answer: TooLarge,
		Why: "etcd takes 1.5 MiB a request, of which this leaves some for the key and the conditions of the write"})
)
