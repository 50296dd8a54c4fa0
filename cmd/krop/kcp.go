package main

import (
	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/publish"
)

// kcp is what krop does there, and knows of it.
type kcp struct {
	planes    *plane.Set
	publisher *publish.Publisher
	bindings  *publish.Bindings
	endpoints *publish.Endpoints
	routes    *publish.Routes
}

func connect(config *apiserver.Config) (*kcp, error) {
	publishing := publish.Config{
		REST:                 config.Kcp,
		ExternalURL:          config.External.String(),
		VirtualWorkspacesURL: config.Options.VirtualWorkspaces.URL,
	}
	publisher, err := publish.New(publishing)
	if err != nil {
		return nil, err
	}
	endpoints, err := publish.NewEndpoints(publishing)
	if err != nil {
		return nil, err
	}
	bindings, err := publish.NewBindings(publishing)
	if err != nil {
		return nil, err
	}
	planes, err := plane.New(plane.Config{
		Kcp: config.Kcp, Host: config.Host, VirtualWorkspaces: config.VirtualWorkspaces, Endpoints: endpoints,
		Claims: bindings, Limits: config.Options.Limits,
	})
	if err != nil {
		return nil, err
	}
	return &kcp{planes: planes, publisher: publisher, bindings: bindings, endpoints: endpoints, routes: &publish.Routes{}}, nil
}
