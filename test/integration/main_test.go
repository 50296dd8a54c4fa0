package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.opendefense.cloud/krop/test/testbed"
)

// bootTimeout is for kcp, the host and krop on a busy machine with two cores.
const bootTimeout = 5 * time.Minute

// bed is what all tests of the package run in, but those that say otherwise.
var bed *testbed.Bed

// checkout is the root of the repository.
var checkout string

func TestMain(m *testing.M) {
	code, err := boot(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// boot runs the tests in a test bed and ends it.
func boot(m *testing.M) (code int, err error) {
	if checkout, err = filepath.Abs("../.."); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootTimeout)
	defer cancel()
	if bed, err = testbed.Start(ctx, testbed.Options{KropFlags: []string{"--resync=1h"}, Progress: os.Stderr}); err != nil {
		return 1, err
	}
	defer func() {
		if stopped := bed.Stop(); err == nil {
			err = stopped
		}
	}()
	return m.Run(), nil
}
