package apiserver

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout is below the 60 s after which kcp's proxy gives up, so that the answer is krop's.
const requestTimeout = 50 * time.Second

// Config is what the options come to: files are read, the port is taken, nothing is served yet.
type Config struct {
	// Generic configures the server of k8s.io/apiserver.
	Generic *genericapiserver.Config
	// Kcp is krop's own user in kcp; its host may end in /clusters/...
	Kcp *rest.Config
	// Host is the host cluster; nil if there is none.
	Host *rest.Config
	// External is the address that shards reach krop at.
	External *url.URL
	// VirtualWorkspaces is where kcp serves its own; nil if endpoints can be taken at their word.
	VirtualWorkspaces *url.URL
	// Options the config was made from.
	Options *Options

	forwarding *forwarding // nil: nothing is forwarded
	fair       *fairness
}

// Config reads what the options point to, and listens.
func (o *Options) Config() (*Config, error) {
	boundMetrics()
	config := &Config{Options: o}
	if err := config.loadClients(); err != nil {
		return nil, err
	}
	config.Generic = genericapiserver.NewConfig(codecs)
	configureGeneric(config.Generic, config.External)
	fair, err := newFairness(o.Limits)
	if err != nil {
		return nil, err
	}
	config.Generic.FlowControl, config.fair = fair, fair
	if err := o.Audit.ApplyTo(config.Generic); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if err := o.SecureServing.ApplyTo(&config.Generic.SecureServing); err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	if err := o.applyTrust(config.Generic); err != nil {
		return nil, err
	}
	return config, nil
}

func configureGeneric(generic *genericapiserver.Config, external *url.URL) {
	generic.EffectiveVersion = newVersion()
	generic.ExternalAddress = external.Host
	// No credential comes with it: krop's own parts call each other, not the server.
	generic.LoopbackClientConfig = &rest.Config{}
	// Discovery and OpenAPI differ from export to export; the server as a whole has none.
	generic.EnableDiscovery = false
	generic.SkipOpenAPIInstallation = true
	generic.EnableIndex = false
	generic.EnableProfiling = false
	generic.RequestTimeout = requestTimeout
	generic.LongRunningFunc = longRunning()
	generic.ShutdownSendRetryAfter = true
}

func (o *Options) applyTrust(generic *genericapiserver.Config) error {
	clientCA, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", o.ClientCAFile)
	if err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	proxies, err := o.RequestHeader.ToAuthenticationRequestHeaderConfig()
	if err != nil {
		return fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	if err := acceptCertificates(generic, clientCA, proxies); err != nil {
		return err
	}
	believed := identities{clientCA: clientCA, proxies: proxies, routers: o.ShardRouterNames, shards: sets.New(o.ShardNames...)}
	generic.Authentication.Authenticator = believed.authenticator()
	generic.Authentication.RequestHeaderConfig = proxies
	generic.Authorization.Authorizer = gatekeeper{monitors: sets.New(o.MonitoringNames...)}
	return nil
}

// acceptCertificates makes TLS ask clients for certificates of either authority.
func acceptCertificates(generic *genericapiserver.Config, clientCA dynamiccertificates.CAContentProvider, proxies *authenticatorfactory.RequestHeaderConfig) error {
	if err := generic.Authentication.ApplyClientCert(clientCA, generic.SecureServing); err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	if proxies == nil {
		return nil
	}
	if err := generic.Authentication.ApplyClientCert(proxies.CAContentProvider, generic.SecureServing); err != nil {
		return fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	return nil
}

func (c *Config) loadClients() (err error) {
	o := c.Options
	if c.Kcp, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if c.Host, err = o.host(); err != nil {
		return err
	}
	if c.External, err = url.Parse(o.ExternalURL); err != nil {
		return fmt.Errorf("--external-url: %w", err)
	}
	if o.VirtualWorkspaces.URL == "" {
		return nil
	}
	if c.VirtualWorkspaces, err = url.Parse(o.VirtualWorkspaces.URL); err != nil {
		return fmt.Errorf("--virtual-workspaces-url: %w", err)
	}
	if o.VirtualWorkspaces.ProxyCertFile == "" {
		return nil
	}
	c.forwarding, err = newForwarding(c.VirtualWorkspaces, c.Kcp, o.VirtualWorkspaces)
	return err
}

// host is the configuration of krop's user in the host cluster; nil if there is no host.
func (o *Options) host() (*rest.Config, error) {
	switch {
	case o.HostInCluster:
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--host-in-cluster: %w", err)
		}
		return config, nil
	case o.HostKubeconfig != "":
		config, err := clientcmd.BuildConfigFromFlags("", o.HostKubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--host-kubeconfig: %w", err)
		}
		return config, nil
	default:
		return nil, nil
	}
}

// newForwarding trusts the authorities that krop's own kubeconfig trusts: it is the same kcp.
func newForwarding(target *url.URL, kcp *rest.Config, proxy VirtualWorkspaces) (*forwarding, error) {
	verified := rest.TLSClientConfig{CAFile: kcp.CAFile, CAData: kcp.CAData, ServerName: kcp.ServerName, Insecure: kcp.Insecure}
	plain, err := transportFor(verified)
	if err != nil {
		return nil, err
	}
	verified.CertFile, verified.KeyFile = proxy.ProxyCertFile, proxy.ProxyKeyFile
	named, err := transportFor(verified)
	if err != nil {
		return nil, err
	}
	return &forwarding{target: target, named: named, plain: plain}, nil
}

func transportFor(verified rest.TLSClientConfig) (http.RoundTripper, error) {
	made, err := rest.TransportFor(&rest.Config{TLSClientConfig: verified})
	if err != nil {
		return nil, fmt.Errorf("connections to kcp's virtual workspaces: %w", err)
	}
	return made, nil
}

func watchLimit(seconds int) time.Duration { return time.Duration(seconds) * time.Second }
