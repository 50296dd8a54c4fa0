package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"go.opendefense.cloud/krop/pkg/publish"
)

// bootstrapTimeout leaves kcp time for a new workspace (seconds) and for a first binding (some 5 s).
const bootstrapTimeout = 2 * time.Minute

type bootstrapOptions struct {
	kubeconfig  string
	externalURL string
	workspace   string
	kropUser    string
	bindGroups  []string
	timeout     time.Duration
}

func newBootstrapCommand() *cobra.Command {
	options := bootstrapOptions{}
	command := &cobra.Command{
		Use:   "bootstrap",
		Short: "Set up krop's own workspace in kcp",
		Long: `Set up krop's own workspace in kcp, as an admin of its parent: the workspace, the rights of krop's
user in it, and the export of the blueprint kind that providers bind. Running it again changes nothing that
is as it should be; after an upgrade of krop it brings the blueprint kind up to date.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.run(command.Context(), command)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "kubeconfig of an admin of kcp (default: as kubectl finds it)")
	flags.StringVar(&options.externalURL, "external-url", "", "where kcp's shards reach krop: their --shard-virtual-workspace-url (required)")
	flags.StringVar(&options.workspace, "workspace", publish.DefaultHome.String(), "path of krop's own workspace")
	flags.StringVar(&options.kropUser, "krop-user", "krop", "name of krop's user in kcp")
	flags.StringSliceVar(&options.bindGroups, "bind-group", []string{"system:authenticated"}, "groups whose members may bind the blueprint kind")
	flags.DurationVar(&options.timeout, "timeout", bootstrapTimeout, "how long to wait for kcp")
	_ = command.MarkFlagRequired("external-url") // fails only for a flag that isn't defined
	return command
}

func (o bootstrapOptions) run(ctx context.Context, command *cobra.Command) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	out := command.OutOrStdout()
	export, err := publish.Bootstrap(ctx, publish.BootstrapConfig{
		REST:        config,
		ExternalURL: o.externalURL,
		Workspace:   logicalcluster.NewPath(o.workspace),
		KropUser:    o.kropUser,
		BindGroups:  o.bindGroups,
		Report:      func(object, outcome string) { fmt.Fprintln(out, object, outcome) },
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "krop serves the blueprint kind at %s\n", publish.ServiceURL(o.externalURL, export))
	return nil
}
