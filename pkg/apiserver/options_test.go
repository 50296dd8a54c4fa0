package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// TestEachBadFlagIsNamedOnce spoils one option at a time.
func TestEachBadFlagIsNamedOnce(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, spoil := range map[string][]func(*apiserver.Options){
		"--tls-cert-file":               {func(o *apiserver.Options) { o.SecureServing.ServerCert.CertKey.CertFile = garbage }},
		"--tls-private-key-file":        {func(o *apiserver.Options) { o.SecureServing.ServerCert.CertKey.KeyFile = "absent" }},
		"--client-ca-file":              {func(o *apiserver.Options) { o.ClientCAFile = "" }, func(o *apiserver.Options) { o.ClientCAFile = garbage }},
		"--requestheader-allowed-names": {func(o *apiserver.Options) { o.RequestHeader.AllowedNames = nil }, func(o *apiserver.Options) { o.RequestHeader.AllowedNames = []string{" "} }, func(o *apiserver.Options) { o.RequestHeader.AllowedNames = []string{shard} }},
		"--requestheader-client-ca-file": {
			func(o *apiserver.Options) { o.RequestHeader.ClientCAFile = "" }, func(o *apiserver.Options) { o.RequestHeader.ClientCAFile = garbage }},
		"--requestheader-username-headers": {func(o *apiserver.Options) { o.RequestHeader.UsernameHeaders = nil }},
		"--shard-names":                    {func(o *apiserver.Options) { o.ShardNames = nil }, func(o *apiserver.Options) { o.ShardNames = []string{""} }},
		"--shard-router-names":             {func(o *apiserver.Options) { o.ShardRouterNames = []string{shard} }, func(o *apiserver.Options) { o.ShardRouterNames = []string{""} }},
		"--monitoring-names":               {func(o *apiserver.Options) { o.MonitoringNames = []string{""} }},
		"--kubeconfig":                     {func(o *apiserver.Options) { o.Kubeconfig = "" }, func(o *apiserver.Options) { o.Kubeconfig = garbage }, func(o *apiserver.Options) { o.Kubeconfig = "absent" }},
		"--host-kubeconfig":                {func(o *apiserver.Options) { o.HostKubeconfig = "absent" }, func(o *apiserver.Options) { o.HostKubeconfig = garbage }},
		"--host-in-cluster":                {func(o *apiserver.Options) { o.HostInCluster = true }, func(o *apiserver.Options) { o.HostInCluster, o.HostKubeconfig = true, o.Kubeconfig }},
		"--external-url":                   {func(o *apiserver.Options) { o.ExternalURL = "" }, func(o *apiserver.Options) { o.ExternalURL = "localhost:7443" }, func(o *apiserver.Options) { o.ExternalURL = "https://localhost/services" }, func(o *apiserver.Options) { o.ExternalURL = "http://localhost" }},
		"--virtual-workspaces-url":         {func(o *apiserver.Options) { o.VirtualWorkspaces.URL = "" }, func(o *apiserver.Options) { o.VirtualWorkspaces.URL = "https://kcp/clusters/root" }},
		"--proxy-client-key-file":          {func(o *apiserver.Options) { o.VirtualWorkspaces.ProxyKeyFile = "" }, func(o *apiserver.Options) { o.VirtualWorkspaces.ProxyKeyFile = garbage }},
		"--data-dir":                       {func(o *apiserver.Options) { o.Etcd.DataDir = "" }},
		"--etcd-servers":                   {func(o *apiserver.Options) { o.Etcd.Servers = []string{"localhost:2379"} }},
		"--etcd-certfile":                  {func(o *apiserver.Options) { o.Etcd.KeyFile = garbage }},
		"--etcd-cafile":                    {func(o *apiserver.Options) { o.Etcd.CAFile = garbage }},
		"--resync":                         {func(o *apiserver.Options) { o.Resync = 0 }},
		"--compose-timeout":                {func(o *apiserver.Options) { o.ComposeTimeout = 34 * time.Second }, func(o *apiserver.Options) { o.ComposeTimeout = 0 }},
		"--max-requests-inflight":          {func(o *apiserver.Options) { o.Limits[budget.Reads] = 0 }},
		"--max-mutating-requests-inflight": {func(o *apiserver.Options) { o.Limits[budget.Writes] = -1 }},
		"--secure-port":                    {func(o *apiserver.Options) { o.SecureServing.Listener, o.SecureServing.BindPort = nil, 0 }},
		"--audit-log-maxage":               {func(o *apiserver.Options) { o.Audit.LogOptions.Path, o.Audit.LogOptions.MaxAge = "x", -1 }},
	} {
		for i, change := range spoil {
			options := goodOptions(t)
			change(options)
			problems := options.Validate()
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), strings.TrimPrefix(flag, "--")) || strings.Contains(problems[0].Error(), "\n") {
				t.Errorf("%s, %d: %v", flag, i, problems)
			}
		}
	}
}

func TestAllMissingFlagsAreNamedTogether(t *testing.T) {
	problems := apiserver.NewOptions().Validate()
	for _, flag := range []string{"--tls-cert-file", "--tls-private-key-file", "--external-url", "--client-ca-file", "--shard-names", "--kubeconfig"} {
		found := false
		for _, problem := range problems {
			found = found || strings.HasPrefix(problem.Error(), flag+" is required")
		}
		if !found {
			t.Errorf("%s isn't named: %v", flag, problems)
		}
	}
}

// TestRouterMayAlsoBeAnAllowedName: operators list every proxy in the allowed names.
func TestRouterMayAlsoBeAnAllowedName(t *testing.T) {
	options := goodOptions(t)
	options.RequestHeader.AllowedNames = []string{frontProxy, router}
	if problems := options.Validate(); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestEveryFlagIsInAGroupAndExplained(t *testing.T) {
	groups := cliflag.NamedFlagSets{}
	apiserver.NewOptions().AddFlags(&groups)
	seen := map[string]bool{}
	for _, name := range groups.Order {
		groups.FlagSets[name].VisitAll(func(flag *pflag.Flag) {
			if flag.Usage == "" || seen[flag.Name] {
				t.Errorf("--%s in %s: usage %q, seen before: %t", flag.Name, name, flag.Usage, seen[flag.Name])
			}
			seen[flag.Name] = true
		})
	}
	for _, flag := range []string{
		"bind-address", "secure-port", "tls-cert-file", "tls-private-key-file", "client-ca-file",
		"requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-username-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix",
		"kubeconfig", "host-kubeconfig", "host-in-cluster", "data-dir", "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "shard-names", "shard-router-names",
		"virtual-workspaces-url", "external-url", "proxy-client-cert-file", "proxy-client-key-file", "resync", "compose-timeout", "audit-policy-file", "audit-log-path",
	} {
		if !seen[flag] {
			t.Errorf("--%s is missing", flag)
		}
	}
}

func goodOptions(t *testing.T) *apiserver.Options {
	t.Helper()
	authorities, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{pki: authorities, kcp: &fakeKcp{url: "https://localhost:6443"}}
	options := b.options(t)
	listener := options.SecureServing.Listener
	t.Cleanup(func() { _ = listener.Close() })
	if problems := options.Validate(); len(problems) > 0 {
		t.Fatal(problems)
	}
	return options
}
