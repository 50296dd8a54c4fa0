package budget

// What one tenant may have of the loop behind the requests.
var (
	Passes = define(Bound{Name: "maxPassesPerConsumer", Fixed: true, Of: "passes at one time over instances of the workspace", Default: 8, Answer: "waits",
		Why: "a quarter of the loop's workers: passes load the API servers that everybody waits for, and a slow one must not take every worker"})
	BackgroundPasses = define(Bound{Name: "maxBackgroundPassesPerConsumer", Fixed: true, Of: "those of them that can wait: after a blueprint's edit, for what is only read, after a failure, at the resync", Default: 4, Answer: "waits",
		Why: "they come by the hundred, and half of what an export has is left to its other consumers"})
	BackgroundPassesPerExport = define(Bound{Name: "maxBackgroundPassesPerExport", Fixed: true, Of: "passes at one time over instances of the export that can wait", Default: 8, Answer: "waits",
		Why: "a quarter of the loop's workers: an edit of a blueprint comes to the instances of all of its consumers"})
	ReadPause = define(Bound{Name: "readPause", Fixed: true, Of: "time between passes over an instance for changes of what it only reads", Unit: "seconds", Default: 1, Answer: "waits",
		Why: "the first change is followed at once; one object that all instances of a workspace read may change many times a second"})
)
