package process

import "syscall"

// attributes puts a child into a group of its own and has the kernel kill it when its parent dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
