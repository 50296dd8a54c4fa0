package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// terminateWithParent has the kernel send SIGTERM when the parent dies, so that killing make ends the
// playground too.
func terminateWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return fmt.Errorf("tie the playground to its parent: %w", err)
	}
	return nil
}
