// Package compose acts on the engine's plans: it dry-runs them before anything is stored (Preflight),
// applies them in waves afterwards (Apply), prunes what is no longer wanted, and tears instances down.
package compose
