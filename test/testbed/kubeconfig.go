package testbed

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// Kubeconfig is the file with the kubeconfig of a user.
func (b *Bed) Kubeconfig(user User) string {
	return b.layout.kubeconfig(user)
}

// Config is the client configuration of a user, without client-side rate limits.
func (b *Bed) Config(user User) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.Kubeconfig(user))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	config.QPS = -1
	return config, nil
}

// PKI issues more certificates of this test bed, for tests of who is trusted.
func (b *Bed) PKI() *pki.PKI {
	return b.pki
}

// writeKubeconfig writes a kubeconfig that holds its certificates itself, so that it can be copied elsewhere.
func (b *Bed) writeKubeconfig(file, server string, authority pki.Authority, identity pki.Identity) error {
	pair, err := b.pki.Client(authority, identity)
	if err != nil {
		return err
	}
	var contents [3][]byte
	for i, name := range []string{b.pki.CAFile(pki.Serving), pair.CertFile, pair.KeyFile} {
		if contents[i], err = os.ReadFile(name); err != nil {
			return fmt.Errorf("write a kubeconfig: %w", err)
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["testbed"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: contents[0]}
	config.AuthInfos[identity.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	config.Contexts["testbed"] = &clientcmdapi.Context{Cluster: "testbed", AuthInfo: identity.Name}
	config.CurrentContext = "testbed"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}
