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
	BodySeconds = define(Bound{Name: "bodyTime", Fixed: true, Of: "time for the body of the request to arrive", Unit: "seconds", Default: 10, Answer: Slow,
		Why: "the largest instance at 80 kB/s; it leaves a write 6 seconds for its turn and 25 to be composed, of the 50 that a request has"})
	Bodies = define(Bound{Name: "maxBodies", Fixed: true, Of: "bodies of requests that arrive at one time", Default: 6400, Answer: Busy,
		Why: "as many as can wait for their turns; of each no more than 16 KiB is taken in without more ado, 100 MiB in all"})
	BodiesPerConsumer = define(Bound{Name: "maxBodiesPerConsumer", Fixed: true, Of: "bodies of the workspace's requests that arrive at one time", Default: 300, Answer: Busy,
		Why: "as many of a workspace's requests as can wait for their turns, 5 MiB; small ones take no place in flight before they are there"})
	LargeBodies = define(Bound{Name: "maxLargeBodies", Fixed: true, Of: "bodies over 16 KiB of requests that have no turn yet", Default: 32, Answer: Busy,
		Why: "they may be 3 MiB each, so some 100 MiB; bodies arrive within milliseconds where nobody dawdles"})
	LargeBodiesPerConsumer = define(Bound{Name: "maxLargeBodiesPerConsumer", Fixed: true, Of: "bodies over 16 KiB of the workspace's requests that have no turn yet", Default: 8, Answer: Busy,
		Why: "a quarter of all, as with places; when all are taken, workspaces take turns"})
	WatchesPerConsumer = define(Bound{Name: "max-watches-per-consumer", Of: "watches of the workspace", Default: 100, Answer: Busy,
		Why: "each is some 50 KiB, but up to 1.6 MiB while its client doesn't read the event of one of the largest instances: 160 MiB"})
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
