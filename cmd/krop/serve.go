package main

import (
	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	cliflag "k8s.io/component-base/cli/flag"

	"go.opendefense.cloud/krop/pkg/apiserver"
)

// helpColumns is how wide help is printed: what most terminals and web pages show unwrapped.
const helpColumns = 110

func newServeCommand() *cobra.Command {
	options := apiserver.NewOptions()
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve blueprints and the APIs made of them",
		Long: `Serve blueprints, and the APIs made of them, to the shards of a kcp.

krop is reached by shards over TLS, at --external-url. Objects are kept in an embedded etcd below
--data-dir, or in the etcd cluster of --etcd-servers.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := utilerrors.NewAggregate(options.Validate()); err != nil {
				return err
			}
			return serve(command.Context(), options)
		},
	}
	groups := cliflag.NamedFlagSets{}
	options.AddFlags(&groups)
	for _, group := range groups.FlagSets {
		command.Flags().AddFlagSet(group)
	}
	cliflag.SetUsageAndHelpFunc(command, groups, helpColumns)
	return command
}
