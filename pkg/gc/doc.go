// Package gc is the loop that keeps instances true after the request that wrote them was answered:
// pending nodes, readiness, drift, prune, teardown, orphans. Events drive it; timers only back it up.
package gc
