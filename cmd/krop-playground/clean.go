package main

import (
	"github.com/spf13/cobra"

	"go.opendefense.cloud/krop/test/testbed"
)

func cleanCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "clean",
		Short: "Forget the data of a playground that has ended",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return explained(testbed.RemoveData(dir))
		},
	}
	command.Flags().StringVar(&dir, "dir", ".playground", "folder of the playground")
	return command
}
