//go:build !linux

package process

import "syscall"

// attributes puts a child into a group of its own. There is no death signal outside Linux.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
