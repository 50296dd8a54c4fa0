package kro

import "runtime"

// allocations is how many bytes a function allocates, whether they are given back or not.
func allocations(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
