// Command bench measures krop beside what it could be compared to, in one run on one machine: kro's own builder, plans
// without budgets, a ConfigMap through the same kcp, and hand-written clients that do the same dry-runs and writes, through
// the same virtual workspace or on the same host. It prints p50, p99 and CPU per operation, and ratios beside their aims.
// It asserts nothing: numbers of a busy machine are no reason to fail.
//
//	make bench                                     # all of it, some minutes
//	bin/krop-bench --only=host                     # one measure; --help lists them
//	bin/krop-bench --only=memory --instances=5000  # memory at more idle instances
package main
