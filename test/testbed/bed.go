package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// Bed is a test bed that runs.
type Bed struct {
	// KCP is the shard.
	KCP *Server
	// Krop is krop serve; nil without krop.
	Krop *Server
	// Host is the host cluster's kube-apiserver; nil without a host.
	Host *Server

	options Options
	layout  layout
	ports   ports
	pki     *pki.PKI
	lock    *os.File

	mu      sync.Mutex
	servers []*Server // in the order of their start
	etcd    *embed.Etcd
}

// Start starts a test bed and returns when everything serves, workspaces are there, and the provider is ready
// to publish. When it fails, nothing is left running. The context is only that of the start.
func Start(ctx context.Context, options Options) (*Bed, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	b, err := open(options)
	if err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// open claims the folder and the ports, and describes the servers. Nothing runs yet.
func open(options Options) (*Bed, error) {
	dir, err := claimDir(options.Dir)
	if err != nil {
		return nil, err
	}
	b := &Bed{options: options, layout: layout(dir)}
	for _, step := range []func() error{b.claim, b.issueUsers, b.describeKCP, b.describeKrop} {
		if err := step(); err != nil {
			return nil, errors.Join(err, b.Stop())
		}
	}
	return b, nil
}

// keepVariable names the environment variable with a folder that takes temporary test beds. There they are
// kept when they end, so that the logs of a failed test can be read.
const keepVariable = "KROP_TESTBED_KEEP"

// claimDir makes the folder absolute, or makes a temporary one.
func claimDir(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.MkdirTemp(os.Getenv(keepVariable), "krop-testbed-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the test bed: %w", err)
	}
	return dir, nil
}

// claim takes the folder and the ports. If the ports can't be had, nothing is left in a folder that was new.
func (b *Bed) claim() error {
	fresh := b.layout.unused()
	if err := b.layout.prepare(); err != nil {
		return err
	}
	var err error
	if b.lock, err = b.layout.lock(); err != nil {
		return err
	}
	if b.ports, err = findPorts(b.options.BasePort); err != nil {
		if fresh {
			err = errors.Join(err, b.layout.clear())
		}
		return err
	}
	b.pki, err = pki.Open(b.layout.data("pki"))
	return err
}

func (b *Bed) issueUsers() error {
	users := []User{Admin, Provider, Consumer, Consumer2}
	if !b.options.WithoutHost {
		users = append(users, Host)
	}
	for _, user := range users {
		if err := b.issueUser(user); err != nil {
			return err
		}
	}
	return nil
}

// start starts the host beside kcp, and krop once kcp knows it.
func (b *Bed) start(ctx context.Context) error {
	if err := concurrently(ctx, b.startHost, b.startKCPWithTenants); err != nil {
		return err
	}
	if err := b.startKrop(ctx); err != nil {
		return err
	}
	return b.prepareTenants(ctx)
}

func (b *Bed) startKCPWithTenants(ctx context.Context) error {
	if err := b.startKCP(ctx); err != nil {
		return err
	}
	return concurrently(ctx, b.addWorkspaces, b.bootstrapKrop)
}

// concurrently runs steps until all have succeeded or one has failed. The context of each is done after that.
func concurrently(ctx context.Context, steps ...func(context.Context) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, step := range steps {
		all.Go(func() error { return step(ctx) })
	}
	return all.Wait()
}

// startServer starts a server and remembers to stop it.
func (b *Bed) startServer(ctx context.Context, server *Server) error {
	b.say("starting %s", server.spec.Name)
	b.mu.Lock()
	b.servers = append(b.servers, server)
	b.mu.Unlock()
	return server.Start(ctx)
}

// Stop ends every process, the last started first, and returns when they have ended. It may be called again.
func (b *Bed) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for i := len(b.servers) - 1; i >= 0; i-- {
		errs = append(errs, b.servers[i].Stop())
	}
	b.servers = nil
	b.stopEtcd()
	if b.lock != nil {
		errs = append(errs, b.lock.Close())
		b.lock = nil
	}
	if b.volatile() && os.Getenv(keepVariable) == "" {
		errs = append(errs, os.RemoveAll(string(b.layout)))
	}
	return errors.Join(errs...)
}

// AwaitExit returns a server that has ended although the test bed runs, or nil when the context is done.
func (b *Bed) AwaitExit(ctx context.Context) *Server {
	b.mu.Lock()
	servers := append([]*Server{}, b.servers...)
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *Server, len(servers))
	for _, server := range servers {
		go func() {
			select {
			case <-server.Exited():
				ended <- server
			case <-ctx.Done():
			}
		}()
	}
	select {
	case server := <-ended:
		return server
	case <-ctx.Done():
		return nil
	}
}

// Dir is the folder of the test bed.
func (b *Bed) Dir() string { return string(b.layout) }

// say reports a step to whoever waits.
func (b *Bed) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.options.Progress, format+"\n", args...)
}
