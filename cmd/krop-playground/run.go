package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"go.opendefense.cloud/krop/test/testbed"
)

// readyLine is what scripts wait for on stdout.
const readyLine = "playground ready"

func runCommand() *cobra.Command {
	var options testbed.Options
	var endWithParent bool
	command := &cobra.Command{
		Use:   "run",
		Short: "Start everything and stay until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if endWithParent {
				if err := terminateWithParent(); err != nil {
					return err
				}
			}
			executable, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the checkout: %w", err)
			}
			options.Checkout = filepath.Dir(filepath.Dir(executable)) // it lies in bin/
			options.Progress = os.Stderr
			return run(command.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Dir, "dir", ".playground", "folder for kubeconfigs, logs and data; a second start uses its data")
	options.BasePort = 6443
	flags.Var((*port)(&options.BasePort), "port", fmt.Sprintf("first of %d ports; kcp's", testbed.PortCount))
	flags.StringVar((*string)(&options.Topology), "topology", string(testbed.TwoProcesses),
		fmt.Sprintf("%s, or %s for kcp behind its proxies", testbed.TwoProcesses, testbed.Production))
	flags.BoolVar(&options.WithoutKrop, "without-krop", false, "leave out krop")
	flags.BoolVar(&endWithParent, "end-with-parent", false, "end when the process that started this one ends (Linux)")
	return command
}

// run returns nil when it was interrupted, and an error when a server could not be started or ended by itself.
func run(ctx context.Context, options testbed.Options) error {
	bed, err := testbed.Start(ctx, options)
	if err != nil {
		return explained(err)
	}
	fmt.Printf("kubeconfigs are in %s\n%s\n", bed.Dir(), readyLine)
	err = stay(ctx, bed)
	fmt.Fprintln(os.Stderr, "stopping")
	return errors.Join(err, bed.Stop())
}

// stay starts krop again when it has ended, so that one can see what a crash does. It returns at an interrupt,
// or when another server has ended.
func stay(ctx context.Context, bed *testbed.Bed) error {
	for {
		server := bed.AwaitExit(ctx)
		if server == nil {
			return nil
		}
		if server != bed.Krop {
			return server.Failure()
		}
		fmt.Fprintf(os.Stderr, "%v\nstarting krop again\n", server.Failure())
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
}
