// Command krop-playground runs kcp, a host cluster and krop on this machine for people to try, and ends all of
// them when it is interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// the context stays registered until the end: a second interrupt must not cut short the stop
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	root := &cobra.Command{
		Use:           "krop-playground",
		Short:         "kcp, a host cluster and krop on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), cleanCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
