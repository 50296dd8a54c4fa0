// Command krop serves composed APIs inside kcp.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
)

func main() {
	command := newRootCommand()
	command.SetContext(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
