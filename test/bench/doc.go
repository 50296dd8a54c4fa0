// Command bench measures krop beside what it could be compared to, in one run on one machine: a
// ConfigMap through the same kcp, and a hand-written client that does the same dry-runs and writes
// through the same virtual workspace. It prints p50, p99 and CPU per operation, and ratios. It
// asserts nothing: numbers of a busy machine are no reason to fail.
//
//	make bench                      # a few minutes
//	bin/krop-bench --instances 5000 # memory at more idle instances
package main
