package messages

// quoted is what the page shows of others' words, and whose they are.
var quoted = map[string]string{
	"... must be of type ...":                                        "the validation of OpenAPI schemas",
	"... failed rule: ...":                                           "the validation of CEL rules",
	`namespaces "..." not found`:                                     "Kubernetes",
	"Operation cannot be fulfilled ...":                              "Kubernetes",
	"Apply failed with ... conflict...":                              "Kubernetes",
	"too many requests, please try again later":                      "Kubernetes, which writes the answer to 429",
	"error resolving resource: apiexports.apis.kcp.io ... not found": "kcp",
}

// silent are files whose texts are no messages, and why.
var silent = map[string]string{
	"pkg/apiserver/bearer.go":         "stands for tokens in logs",
	"pkg/apiserver/flags.go":          "descriptions of flags, which krop run --help lists",
	"pkg/budget/bounds_blueprint.go":  "names of bounds and their reasons: parts of the one message that speaks of them",
	"pkg/budget/bounds_instance.go":   "names of bounds and their reasons: parts of the one message that speaks of them",
	"pkg/budget/bounds_loop.go":       "names of bounds and their reasons: parts of the one message that speaks of them",
	"pkg/budget/bounds_server.go":     "names of bounds and their reasons: parts of the one message that speaks of them",
	"pkg/engine/kro/budget.go":        "an expression to try the budget with, and a start that no user sees",
	"pkg/engine/kro/crd.go":           "descriptions of fields, which kubectl explain shows",
	"pkg/plane/herald.go":             "for the log: the watch is made again",
	"pkg/publish/bindingstore.go":     "for the log: what an informer can't have",
	"pkg/registry/etcd/keys.go":       "keys are made of what was checked before",
	"pkg/registry/kind/definition.go": "of a definition that the compiler has made: it makes none of these",
}

// internal are texts that no user is shown, and why.
var internal = map[string]string{
	"kcp decides":                            "why a request was allowed, for the audit log",
	"open to all":                            "why a request was allowed, for the audit log",
	"a shard, which has authorized its user": "why a request was allowed, for the audit log",
	"subject to review in the workspace":     "why a request was allowed, for the audit log",

	"<export cluster>":           "a part of a path that the answer to it names",
	"get, list, watch":           "verbs, in a message that is on the page",
	"get and create":             "verbs, in a message that is on the page",
	"patch and create":           "verbs, in a message that is on the page",
	"patch the status of":        "a verb, in a message that is on the page",
	"status condition":           "a role of an expression, in messages that are on the page",
	`object | description="..."`: "what the compiler reads in place of a type",
	"required, default, description, minimum, maximum, minLength, maxLength, pattern, enum, minItems, maxItems, uniqueItems, listType, listMapKey, validation, immutable": "names of markers, in a message that is on the page",
	"self == oldSelf":                   "a rule of the published schema",
	"has(self....) == has(oldSelf....)": "a rule of the published schema",
	"validation failed":                 "what a rule without a message says; kcp's validation adds which",
	"no such key":                       "looked for in errors of CEL",
	"no such attribute":                 "looked for in errors of CEL",
	"index out of bounds":               "looked for in errors of CEL",
	"for key":                           "looked for in errors of CEL",
	"reads an ignored resource":         "told within the engine only",
	"waiting for ...":                   "told within the engine only; people are shown the sentence",
	"plane not reachable":               "a kind of errors; people are told which plane",
	"name is required":                  "names are rendered and checked before",

	"kind ... was asked for out of order":                        "a broken promise of kro's, which a test watches",
	"kind ... was asked for instead of ...":                      "a broken promise of kro's, which a test watches",
	`the program has no resource "..."`:                          "a mistake in krop: nodes are the program's own",
	"planes need a kcp client configuration and endpoints":       "a mistake in krop's wiring",
	`unknown target "..."`:                                       "a mistake in krop: the schema has an enum",
	"unexpected kind ...":                                        "a mistake in krop's manifests, which a test applies",
	".... More is answered with .... The default: ....":          "description of a flag, which krop run --help shows",
	"list of ...: the answer is no list":                         "a mistake of the API server that was asked; people are told the plane",
	"bindings of ... are not followed":                           "a mistake in krop's wiring",
	"blueprints are not listed as unstructured":                  "a mistake in krop: its stores list nothing else",
	"instances are not listed as unstructured":                   "a mistake in krop: its stores list nothing else",
	"an instance is not expected as ...":                         "a mistake in krop: its stores have nothing else",
	"no request info in the context":                             "a mistake in krop's chain of handlers",
	"no authorizer is set to decide whether an apply may create": "a mistake in krop's chain of handlers",
	"a store needs a backend":                                    "a mistake in krop's wiring",
}
