// Package process runs the servers of the test bed as child processes.
//
// A child leads a process group of its own, so that an interrupt at the terminal reaches only the test bed,
// which then ends its children in an order that loses nothing. On Linux a child is also killed by the kernel
// when the test bed dies, however it dies. Elsewhere a kill -9 of the test bed leaves its children behind.
package process
