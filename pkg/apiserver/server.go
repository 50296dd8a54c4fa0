package apiserver

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// CompletedConfig has everything that a server is made of.
type CompletedConfig struct {
	config  *Config
	generic genericapiserver.CompletedConfig
	needs   Dependencies
}

// Complete adds what the rest of krop answers for.
func (c *Config) Complete(needs Dependencies) CompletedConfig {
	served := &exports{
		access:    access{catalog: needs.Catalog, bindings: needs.Bindings, reviewer: needs.Reviewer},
		asked:     needs.Asked,
		minWatch:  watchLimit(c.Generic.MinRequestTimeout),
		addresses: discovery.DefaultAddresses{DefaultAddress: c.External.Host},
		version:   versionHandler(c.Generic),
		limits:    c.Options.Limits,
		watches:   budget.NewTurns(math.MaxInt, c.Options.Limits.Of(budget.WatchesPerConsumer), 0),
		documents: map[v1alpha1.ExportKey]*documents{},
	}
	c.fair.height = needs.Catalog.Height
	behind := surfaces{export: served}
	if c.forwarding != nil {
		behind.forward = newForwarder(*c.forwarding)
	}
	c.Generic.BuildHandlerChainFunc = behind.buildHandlerChain
	return CompletedConfig{config: c, generic: c.Generic.Complete(nil), needs: needs}
}

func versionHandler(generic *genericapiserver.Config) http.Handler {
	info := generic.EffectiveVersion.Info()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		responsewriters.WriteRawJSON(http.StatusOK, info, w)
	})
}

// New makes the server, with its probes.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("krop", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	ready := append([]healthz.HealthChecker{catalogSynced(c.needs.Catalog), exportsServed(c.needs.Catalog)}, c.needs.Ready...)
	if err := generic.AddReadyzChecks(ready...); err != nil {
		return nil, fmt.Errorf("readyz: %w", err)
	}
	if err := generic.AddHealthChecks(c.needs.Live...); err != nil { // livez, healthz and readyz
		return nil, fmt.Errorf("livez: %w", err)
	}
	return &Server{generic: generic}, nil
}

// Server serves exports until it is told to stop.
type Server struct {
	generic *genericapiserver.GenericAPIServer
}

// Run serves until ctx ends, and returns once the requests in flight are answered.
func (s *Server) Run(ctx context.Context) error {
	if err := s.generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
