package testbed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Topology says which processes make up kcp.
type Topology string

// The topologies.
const (
	// TwoProcesses is kcp with its virtual workspaces inside, and krop as the shard's virtual-workspace address.
	TwoProcesses Topology = "TwoProcesses"
	// Production is a shard without virtual workspaces, the virtual-workspaces server, a user-facing
	// front-proxy, and a second front-proxy that routes the shard's virtual-workspace address by path.
	Production Topology = "Production"
)

// Options say what to start. The zero value starts everything for a test.
type Options struct {
	// Dir takes kubeconfigs, logs and data, and is used again by a second start. If empty, a temporary folder
	// is used and removed by Stop, and data is not flushed to disk. KROP_TESTBED_KEEP in the environment names
	// a folder where such temporary folders are made and kept instead.
	Dir string
	// Checkout of this repository, with binaries in its bin/. If empty, the one that the working directory is in.
	Checkout string
	// BasePort is the first of PortCount consecutive ports. If zero, free ones are taken.
	BasePort int
	// Topology of kcp; TwoProcesses if empty.
	Topology Topology
	// WithoutHost leaves out the host cluster.
	WithoutHost bool
	// WithoutKrop leaves out krop, and with it what a provider applies to use it.
	WithoutKrop bool
	// KropFlags are added to those of krop serve.
	KropFlags []string
	// KropEnv is added to the environment of krop serve, as NAME=value.
	KropEnv []string
	// Progress takes a line per step. If nil, nothing is said.
	Progress io.Writer
}

// complete fills in what is empty.
func (o Options) complete() (Options, error) {
	if o.Topology == "" {
		o.Topology = TwoProcesses
	}
	if o.Topology != TwoProcesses && o.Topology != Production {
		return o, fmt.Errorf("there is no topology %q", o.Topology)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	var err error
	if o.Checkout == "" {
		if o.Checkout, err = findCheckout(); err != nil {
			return o, err
		}
	}
	return o, o.checkBinaries()
}

// checkBinaries finds out before anything starts what is not built.
func (o Options) checkBinaries() error {
	needed := []string{kcpBinary, kubectlBinary}
	if !o.WithoutHost {
		needed = append(needed, hostBinary)
	}
	if !o.WithoutKrop {
		needed = append(needed, kropBinary)
	}
	if o.Topology == Production {
		needed = append(needed, frontProxyBinary, virtualWorkspacesBinary)
	}
	for _, name := range needed {
		if _, err := os.Stat(o.binary(name)); err != nil {
			return fmt.Errorf("%w: make build testbed-binaries puts it there", err)
		}
	}
	return nil
}

// The binaries in bin/.
const (
	kcpBinary               = "kcp"
	frontProxyBinary        = "kcp-front-proxy"
	virtualWorkspacesBinary = "virtual-workspaces"
	hostBinary              = "kube-apiserver"
	kubectlBinary           = "kubectl"
	kropBinary              = "krop"
)

// binary is the path of a binary that make builds.
func (o Options) binary(name string) string {
	return filepath.Join(o.Checkout, "bin", name)
}

// findCheckout is the folder of the nearest go.mod above the working directory.
func findCheckout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find the checkout: no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}
