// Package instance is the REST storage of composed instances: one file per verb. Its Create and
// Update run the way of a write: validate, plan, preflight, store with inventory, apply, answer.
package instance
