// Package gc is the loop behind the requests: it keeps readiness, drift, prune and teardown of every
// stored instance true.
//
// # How a change becomes a pass
//
// Events drive the loop; timers only back it up. For each kind that is served it watches
//
//   - the stored instances (Instances.Watch), which also fill an index from instance UID to name;
//   - the children, one watch per plane and resource (plane.Sources), for the resources that the
//     program has and for those that some inventory still lists;
//   - what instances only read (see externals), one watch of all objects per plane and resource, and who reads
//     which of them;
//   - the bindings of the export (Bindings), and which consumers this replica looks after (Ownership).
//
// An event names an instance. The instance's key goes into a queue that is fair among consumer
// clusters, serves events before resync, and gives no tenant more than a part of the workers (see lanes). A worker takes it up: one pass. A pass reads the
// instance from storage, under the instance's lock, and composes it anew, or takes it down. It never
// acts on what an event said, only on what it reads itself. So events may be lost, doubled or
// reordered, and a DELETED event is a hint at most.
//
// Events that only echo what krop has written or seen already are told apart by their
// resourceVersion, and cost nothing; see seen.
//
// # What is never done
//
// Nothing is deleted because of silence. A child is reclaimed in three cases only: its instance is
// being deleted, or no longer wants it; its consumer's binding is known to be gone; or a consistent
// read of storage, made after the child was seen, shows that its instance does not exist.
//
// The package does not promise that a pass has run by any time. It promises that an instance whose
// last pass failed, or that changed since, has another one coming.
package gc
