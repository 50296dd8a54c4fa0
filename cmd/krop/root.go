package main

import "github.com/spf13/cobra"

func newRootCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "krop",
		Short:         "Serve composed APIs inside kcp",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newBootstrapCommand())
	return command
}
