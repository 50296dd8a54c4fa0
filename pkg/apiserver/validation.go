package apiserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

// Validate reads every file that a flag names and says, one error a flag, what is wrong. It neither
// listens nor connects.
func (o *Options) Validate() []error {
	var problems []error
	for _, check := range []func() []error{
		o.validateServing, o.validateTrust, o.validateNames, o.validateClients, o.validateStorage, o.validateLimits, o.Audit.Validate,
	} {
		problems = append(problems, check()...)
	}
	return slices.DeleteFunc(problems, func(err error) bool { return err == nil })
}

func (o *Options) validateServing() []error {
	problems := []error{}
	if o.SecureServing.Listener == nil {
		problems = o.SecureServing.Validate()
	}
	pair := o.SecureServing.ServerCert.CertKey
	return append(problems,
		required("tls-cert-file", pair.CertFile),
		required("tls-private-key-file", pair.KeyFile),
		keyPair("tls-cert-file", "tls-private-key-file", pair.CertFile, pair.KeyFile),
		address("external-url", o.ExternalURL, true))
}

func (o *Options) validateTrust() []error {
	problems := append(o.RequestHeader.Validate(),
		required("client-ca-file", o.ClientCAFile),
		authorities("client-ca-file", o.ClientCAFile),
		authorities("requestheader-client-ca-file", o.RequestHeader.ClientCAFile))
	proxied := o.RequestHeader.ClientCAFile != ""
	if proxied && len(o.RequestHeader.AllowedNames) == 0 {
		problems = append(problems, errors.New("--requestheader-allowed-names must not be empty with --requestheader-client-ca-file: any certificate of that authority could name users"))
	}
	if !proxied && len(o.RequestHeader.AllowedNames)+len(o.ShardRouterNames) > 0 {
		problems = append(problems, errors.New("--requestheader-client-ca-file is required with --requestheader-allowed-names or --shard-router-names: proxies are verified with it"))
	}
	if proxied && len(o.RequestHeader.UsernameHeaders) == 0 {
		problems = append(problems, errors.New("--requestheader-username-headers must not be empty with --requestheader-client-ca-file"))
	}
	return problems
}

// validateNames sees to it that a shard's name is nothing but a shard's: a proxy by that name would be one
// whenever it names nobody.
func (o *Options) validateNames() []error {
	if len(o.ShardNames) == 0 {
		return []error{errors.New("--shard-names is required: without the common names of shards' certificates nobody could use what is served")}
	}
	problems := emptyNames("shard-names", o.ShardNames)
	problems = append(problems, emptyNames("shard-router-names", o.ShardRouterNames)...)
	problems = append(problems, emptyNames("monitoring-names", o.MonitoringNames)...)
	for flag, names := range map[string][]string{"shard-router-names": o.ShardRouterNames, "requestheader-allowed-names": o.RequestHeader.AllowedNames} {
		for _, name := range names {
			if slices.Contains(o.ShardNames, name) {
				problems = append(problems, fmt.Errorf("--%s: %q is also in --shard-names, and a shard is no proxy", flag, name))
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

func emptyNames(flag string, names []string) []error {
	if slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == "" }) {
		return []error{fmt.Errorf("--%s contains an empty name", flag)}
	}
	return nil
}

func (o *Options) validateClients() []error {
	workspaces := o.VirtualWorkspaces
	problems := []error{
		required("kubeconfig", o.Kubeconfig),
		kubeconfig("kubeconfig", o.Kubeconfig),
		o.validateHost(),
		address("virtual-workspaces-url", workspaces.URL, false),
		keyPair("proxy-client-cert-file", "proxy-client-key-file", workspaces.ProxyCertFile, workspaces.ProxyKeyFile),
	}
	if workspaces.ProxyCertFile != "" && workspaces.URL == "" {
		problems = append(problems, errors.New("--virtual-workspaces-url is required with --proxy-client-cert-file: it says where to forward to"))
	}
	return problems
}

func (o *Options) validateHost() error {
	if o.HostInCluster && o.HostKubeconfig != "" {
		return errors.New("--host-in-cluster and --host-kubeconfig exclude each other: there is one host")
	}
	_, err := o.host()
	return err
}

func (o *Options) validateStorage() []error {
	var problems []error
	if len(o.Etcd.Servers) == 0 {
		problems = append(problems, required("data-dir", o.Etcd.DataDir))
	}
	for _, server := range o.Etcd.Servers {
		parsed, err := url.Parse(server)
		if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
			problems = append(problems, fmt.Errorf("--etcd-servers: %q is not a URL like https://host:2379", server))
		}
	}
	return append(problems,
		authorities("etcd-cafile", o.Etcd.CAFile),
		keyPair("etcd-certfile", "etcd-keyfile", o.Etcd.CertFile, o.Etcd.KeyFile))
}

func (o *Options) validateLimits() []error {
	var problems []error
	if o.Resync <= 0 {
		problems = append(problems, errors.New("--resync must be positive"))
	}
	if o.ComposeTimeout <= 0 || o.ComposeTimeout > maxComposeTimeout {
		problems = append(problems, fmt.Errorf("--compose-timeout must be positive and at most %s: requests end at %s", maxComposeTimeout, handlerLimit))
	}
	return append(problems, o.Limits.Validate()...)
}

func required(flag, value string) error {
	if value == "" {
		return fmt.Errorf("--%s is required", flag)
	}
	return nil
}

func keyPair(certFlag, keyFlag, certFile, keyFile string) error {
	switch {
	case certFile == "" && keyFile == "":
		return nil
	case certFile == "" || keyFile == "":
		return fmt.Errorf("--%s and --%s go together", certFlag, keyFlag)
	}
	if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		return fmt.Errorf("--%s, --%s: %w", certFlag, keyFlag, err)
	}
	return nil
}

func authorities(flag, file string) error {
	if file == "" {
		return nil
	}
	if _, err := cert.CertsFromFile(file); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

func kubeconfig(flag, file string) error {
	if file == "" {
		return nil
	}
	if _, err := clientcmd.BuildConfigFromFlags("", file); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// address must be scheme, host and port: paths are krop's and kcp's to add.
func address(flag, value string, needed bool) error {
	if value == "" {
		if needed {
			return required(flag, value)
		}
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("--%s: %q is not an address like https://host:port", flag, value)
	}
	return nil
}
