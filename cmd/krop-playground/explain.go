package main

import (
	"errors"
	"fmt"

	"go.opendefense.cloud/krop/test/testbed"
)

// explained says in the words of somebody who runs make what a test bed says in its own.
func explained(err error) error {
	var inUse *testbed.InUseError
	if errors.As(err, &inUse) {
		return fmt.Errorf("a playground runs in %s already: use it, or end it with Ctrl-C where it was started; "+
			"a second one needs a folder and ports of its own (make playground PLAYGROUND_DIR=... PLAYGROUND_PORT=...)", inUse.Dir)
	}
	return err
}
