// Package kind is everything about one dynamic kind that doesn't depend on where it is stored:
// schema, defaulting, pruning, validation, strategies, table columns, OpenAPI and request scopes.
package kind

// Kind is a served kind. Immutable, safe for concurrent use.
type Kind struct{}
