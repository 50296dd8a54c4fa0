//go:build !linux

package main

// terminateWithParent does nothing: there is no death signal outside Linux.
func terminateWithParent() error { return nil }
