package budget

// What one tenant may have of the server at one time.
var (
	Reads = define(Bound{Name: "max-requests-inflight", Of: "reads that run at one time", Default: 400, Answer: Busy,
		Why: "that of kube-apiserver; more wait, and each consumer's workspace gets its turn"})
	Writes = define(Bound{Name: "max-mutating-requests-inflight", Of: "writes that run at one time", Default: 200, Answer: Busy,
		Why: "that of kube-apiserver; more wait for 6 seconds, and each consumer's workspace gets its turn"})
	ReadsPerConsumer = define(Bound{Name: "max-requests-inflight-per-consumer", Of: "reads of the workspace that run at one time", Default: 100, Answer: Busy,
		Why: "a quarter of all, so that nobody waits for one consumer's to end"})
	WritesPerConsumer = define(Bound{Name: "max-mutating-requests-inflight-per-consumer", Of: "writes of the workspace that run at one time", Default: 50, Answer: Busy,
		Why: "a quarter of all: writes wait for other API servers, and a slow one must not take every place"})
	WatchesPerConsumer = define(Bound{Name: "max-watches-per-consumer", Of: "watches of the workspace", Default: 500, Answer: Busy,
		Why: "each is a connection's stream with two goroutines and a buffer, some 50 KiB"})
	Work = define(Bound{Name: "maxWorkWaiting", Fixed: true, Of: "work of the workspace that waits for a core", Default: 200, Answer: Busy,
		Why: "what takes more than a few milliseconds of a core takes turns, workspace by workspace; more has no chance of being done in time"})
	CallsPerPlane = define(Bound{Name: "max-calls-per-plane", Of: "calls in flight to the plane", Default: 64, Answer: Busy,
		Why: "below the 100 streams that an API server allows on one HTTP/2 connection"})
	CallsPerConsumer = define(Bound{Name: "max-calls-per-plane-and-consumer", Of: "calls in flight to the plane for one workspace", Default: 32, Answer: Busy,
		Why: "half of a plane's, so that one large instance leaves room for others"})
)

// What may be said.
var (
	MessageBytes = define(Bound{Name: "maxMessageBytes", Fixed: true, Of: "size of a message", Unit: "bytes", Default: 4 << 10, Answer: "cut",
		Why: "enough to act on; a value that is wrong may be a megabyte, and is quoted by those who refuse it"})
	Causes = define(Bound{Name: "maxCauses", Fixed: true, Of: "causes of a refusal", Default: 100, Answer: "cut",
		Why: "people read them; a thousand elements of a list can all be wrong"})
)
