package testbed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"go.opendefense.cloud/krop/test/testbed/pki"
	"go.opendefense.cloud/krop/test/testbed/process"
)

const (
	// readyTimeout is many times what the slowest server (kcp, 5 to 25 s) takes on a busy machine.
	readyTimeout = 3 * time.Minute
	// stopGrace lets a server finish its requests and close its storage: 4 s for kcp, more on a busy machine.
	stopGrace = time.Minute
	// readyBody bounds what is shown of the answer of a server that is not ready.
	readyBody = 2048
)

// Server is one process of the test bed. Tests may end it and start it again. It may be used concurrently.
type Server struct {
	spec  process.Spec
	ready func(context.Context) error
	// stateless says that nothing is lost by ending the server at once.
	stateless bool

	mu      sync.Mutex
	process *process.Process
}

// Start starts the server and returns when it is ready. More flags and environment can be given for this one
// run; a flag takes the place of an earlier one of the same name.
func (s *Server) Start(ctx context.Context, with ...StartOption) error {
	started, err := s.start(with)
	if err != nil {
		return err
	}
	return started.AwaitReady(ctx, readyTimeout, s.ready)
}

// StartOption changes one run of a server.
type StartOption func(*process.Spec)

// WithFlags adds flags.
func WithFlags(flags ...string) StartOption {
	return func(spec *process.Spec) { spec.Args = append(spec.Args, flags...) }
}

// WithEnv adds to the environment, as NAME=value.
func WithEnv(env ...string) StartOption {
	return func(spec *process.Spec) { spec.Env = append(spec.Env, env...) }
}

func (s *Server) start(with []StartOption) (*process.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil && s.process.Running() {
		return nil, fmt.Errorf("%s runs already", s.spec.Name)
	}
	spec := s.spec
	spec.Args, spec.Env = append([]string{}, spec.Args...), append([]string{}, spec.Env...)
	for _, option := range with {
		option(&spec)
	}
	started, err := process.Start(spec)
	if err == nil {
		s.process = started
	}
	return started, err
}

// Stop lets the server end in order, and returns when it has.
func (s *Server) Stop() error {
	p := s.current()
	switch {
	case p == nil:
		return nil
	case s.stateless:
		p.Kill()
		return nil
	default:
		return p.Stop(stopGrace)
	}
}

// Kill ends the server as kill -9 does.
func (s *Server) Kill() {
	if p := s.current(); p != nil {
		p.Kill()
	}
}

// Exited is closed when the present run of the server has ended. It is nil before the first one.
func (s *Server) Exited() <-chan struct{} {
	if p := s.current(); p != nil {
		return p.Exited()
	}
	return nil
}

// Failure waits for the end of the present run and describes it, with the end of the log.
func (s *Server) Failure() error {
	if p := s.current(); p != nil {
		return p.Failure()
	}
	return errors.New(s.spec.Name + " was never started")
}

// Usage is the processor time and memory of the present run.
func (s *Server) Usage() (process.Usage, error) {
	if p := s.current(); p != nil {
		return p.Usage()
	}
	return process.Usage{}, errors.New(s.spec.Name + " was never started")
}

// LogFile takes what the server prints, one run after another.
func (s *Server) LogFile() string { return s.spec.LogFile }

func (s *Server) current() *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// newServer describes a server that runs from the folder of the test bed and answers /readyz at a port.
func (b *Bed) newServer(name, binary string, port int, args []string) (*Server, error) {
	ready, err := b.readyz(localhost(port) + "/readyz")
	if err != nil {
		return nil, err
	}
	return &Server{
		spec: process.Spec{
			Name: name, Path: b.options.binary(binary), Args: args, Dir: string(b.layout), LogFile: b.layout.log(name),
		},
		ready: ready,
	}, nil
}

// readyz asks a server whether it is ready, as anybody may.
func (b *Bed) readyz(url string) (func(context.Context) error, error) {
	ca, err := os.ReadFile(b.pki.CAFile(pki.Serving))
	if err != nil {
		return nil, fmt.Errorf("read the serving CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(response.Body, readyBody))
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
		}
		return err
	}, nil
}
