// Package publish turns blueprints into what kcp needs to offer them, and follows who has bound them.
// It is the only package that knows kcp's publishing types.
//
//   - Publisher writes APIResourceSchema, endpoint slice and APIExport into the provider's workspace, and
//     derives the claims that consumers are asked to accept.
//   - Endpoints knows where an export's virtual workspace is, through which consumers are reached.
//   - Bindings follows the APIBindings of each export: who has bound it, and which claims are accepted.
//   - Routes and ProveRouting say whether kcp really sends requests to krop.
//   - Bootstrap sets up krop's own workspace, as an admin.
//
// A workspace that is gone answers 403, just as one in which krop has lost its rights. Nothing here takes
// a failed read for proof of absence.
package publish
