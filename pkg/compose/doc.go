// Package compose acts on the engine's plans: it dry-runs them before anything is stored (Preflight),
// applies them in waves afterwards (Apply), deletes what is no longer wanted (Prune), and takes
// instances down (Teardown).
//
// What keeps children from getting lost: a child is in the stored inventory before it is written, and
// stays there until it is known to be gone. What keeps foreign objects safe: an object is the
// instance's if it has the recorded UID, or if it carries the instance's marks and the inventory has a row
// for it that records no UID yet. Everything else is foreign, and is neither written nor deleted.
//
// What this package does not promise: that one call brings an instance to rest. It writes what can be
// written now; values that a controller has yet to fill in, objects that are still being deleted
// and planes that can't be reached are for the next call.
package compose
