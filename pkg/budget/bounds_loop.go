package budget

// What one tenant may have of the loop behind the requests.
var (
	Passes = define(Bound{Name: "maxPassesPerTenant", Fixed: true, Of: "passes at one time over instances of the workspace; for what isn't urgent, such as a blueprint's edit, also over those of the export", Default: 8, Answer: "waits",
		Why: "a quarter of the loop's workers: passes load the API servers that everybody waits for, and a slow one must not take every worker"})
	ReadPause = define(Bound{Name: "readPause", Fixed: true, Of: "time between passes over an instance for changes of what it only reads", Unit: "seconds", Default: 1, Answer: "waits",
		Why: "the first change is followed at once; one object that all instances of a workspace read may change many times a second"})
)
