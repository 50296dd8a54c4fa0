package main

import (
	"errors"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func newRootCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "krop",
		Short:         "Serve composed APIs inside kcp",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newBootstrapCommand(), newServeCommand())
	return command
}

// problemsIn takes an error apart, so that each problem gets a line of its own.
func problemsIn(err error) []error {
	if all := utilerrors.Aggregate(nil); errors.As(err, &all) {
		return utilerrors.Flatten(all).Errors()
	}
	return []error{err}
}
