// Command krop serves composed APIs inside kcp.
package main

import (
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
)

func main() {
	command := newRootCommand()
	command.SetContext(genericapiserver.SetupSignalContext())
	if err := cli.RunNoErrOutput(command); err != nil {
		for _, problem := range problemsIn(err) {
			fmt.Fprintln(os.Stderr, "Error:", problem)
		}
		os.Exit(1)
	}
}
