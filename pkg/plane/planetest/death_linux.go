package planetest

import "syscall"

// dieWithParent has the kernel kill a child when the test dies, however it dies.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
