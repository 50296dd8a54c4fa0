package budget

// The answers.
const (
	Invalid  = "422"
	TooLarge = "413"
	Busy     = "429"
	Slow     = "408"
)

// What a blueprint may be. Together they bound how long compiling it takes: some seconds at most.
var (
	Resources = define(Bound{Name: "max-resources", Of: "resources of the blueprint", Default: 300, Answer: Invalid,
		Why: "kro's largest examples have about 30; ten times that still compile in well under a second"})
	Dependencies = define(Bound{Name: "max-dependencies", Of: "dependencies between resources of the blueprint", Default: 5000, Answer: Invalid,
		Why: "each is looked at once in every plan; paths through the graph don't count, since answers are kept"})
	Expressions = define(Bound{Name: "max-expressions", Of: "expressions of the blueprint", Default: 5000, Answer: Invalid,
		Why: "compiling takes about 50 µs each, and kro's largest examples have 200"})
	ExpressionBytes = define(Bound{Name: "max-expression-bytes", Of: "length of an expression", Unit: "bytes", Default: 8 << 10, Answer: Invalid,
		Why: "a long expression is parsed, checked and printed several times over; people write a few hundred bytes"})
	BlueprintBytes = define(Bound{Name: "max-blueprint-bytes", Of: "size of the blueprint", Unit: "bytes", Default: 512 << 10, Most: 1 << 20, Answer: TooLarge,
		Why: "it is stored with its status in one object of etcd, and compiled as a whole; 300 resources of 1.7 KiB each"})
	Dimensions = define(Bound{Name: "max-foreach-axes", Of: "axes of a forEach", Default: 10, Answer: Invalid,
		Why: "kro's own limit"})
	SchemaFields = define(Bound{Name: "max-schema-fields", Of: "fields of the published kind, with its types put in", Default: 5000, Answer: Invalid,
		Why: "at some 200 bytes each, this is the megabyte that an APIResourceSchema can be in kcp's storage"})
	SchemaBytes = define(Bound{Name: "maxSchemaBytes", Fixed: true, Of: "size of the published kind's schema, with its types put in", Unit: "bytes", Default: 1 << 20, Answer: Invalid,
		Why: "the same for long enums, defaults and descriptions of a type that many fields have"})
	SchemaRules = define(Bound{Name: "maxSchemaRules", Fixed: true, Of: "rules (validation) of the published kind, with its types put in, each 256 bytes of one counting for one", Default: 500, Answer: Invalid,
		Why: "compiling one takes some milliseconds"})
	KindFields = define(Bound{Name: "max-kind-fields", Of: "fields of the schema of a child's kind", Default: 50_000, Answer: Invalid,
		Why: "a Pod has some 3,000, the largest custom resources in use some 20,000; each is about a kilobyte of memory while it is used"})
	DocumentBytes = define(Bound{Name: "max-openapi-bytes", Of: "size of the OpenAPI document of a child's group and version", Unit: "bytes", Default: 16 << 20, Answer: Invalid,
		Why: "read and parsed as a whole, which takes some ten times as much memory; that of Kubernetes' apps/v1 is 1 MiB"})
	Blueprints = define(Bound{Name: "max-blueprints", Of: "blueprints of the workspace", Default: 100, Answer: Invalid,
		Why: "each takes some 3.5 MiB: the compiled program with the types of its children's kinds, a watch cache, and watches"})
)

// How blueprints are compiled.
var (
	CompileSeconds = define(Bound{Name: "compile-seconds", Of: "time to compile the blueprint", Unit: "seconds", Default: 15, Most: 28, Answer: Invalid,
		Why: "it is done within the request, which the server gives 34 seconds; reading the workspace's kinds is part of it"})
	Compiles = define(Bound{Name: "max-compiles-inflight", Of: "blueprints that are compiled at one time", Default: 1, Answer: Busy,
		Why: "compiling keeps a core busy; another one is left for everybody else"})
	CompilesWaiting = define(Bound{Name: "max-compiles-waiting", Of: "blueprints of the workspace that wait for being compiled", Default: 20, Answer: Busy,
		Why: "workspaces take turns; a kubectl apply of a folder of blueprints sends one after the other"})
)
