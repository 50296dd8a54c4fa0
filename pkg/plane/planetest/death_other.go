//go:build !linux

package planetest

import "syscall"

// dieWithParent does nothing: there is no death signal outside Linux.
func dieWithParent() *syscall.SysProcAttr { return nil }
