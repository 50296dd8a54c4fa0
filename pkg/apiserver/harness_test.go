package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
	"go.opendefense.cloud/krop/pkg/registry/kind"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

const (
	shard      = "shard-root"
	router     = "vw-router"
	frontProxy = "front-proxy"
	monitor    = "prometheus"

	consumer      = logicalcluster.Name("consumer1")
	otherConsumer = logicalcluster.Name("consumer2")
	stranger      = logicalcluster.Name("stranger1")
)

var (
	export = v1alpha1.ExportKey{Cluster: "provider1", Name: "widgets.example.org"}
	gvr    = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	base   = apiserver.ExportPath(export) + "/clusters/"
	apis   = "/apis/example.org/v1"
)

// bed is a server with TLS on loopback, over a real etcd, and what it depends on.
type bed struct {
	pki      *pki.PKI
	server   *apiserver.Server
	address  string
	catalog  *registry.Catalog
	bindings *bindings
	reviews  *reviews
	kcp      *fakeKcp
	store    *kind.Store
}

// start starts a server that serves widgets; change may alter its options.
func start(t *testing.T, change ...func(*apiserver.Options)) *bed {
	t.Helper()
	b := prepare(t)
	options := b.options(t)
	for _, alter := range change {
		alter(options)
	}
	config := configure(t, options)
	b.serveWidgets(t)
	b.run(t, config)
	b.waitUntil(t, "/readyz")
	return b
}

// startUnsynced starts a server whose catalog isn't loaded yet.
func startUnsynced(t *testing.T) *bed {
	t.Helper()
	b := prepare(t)
	b.run(t, configure(t, b.options(t)))
	b.waitUntil(t, "/livez")
	return b
}

func prepare(t *testing.T) *bed {
	t.Helper()
	b := &bed{
		catalog:  &registry.Catalog{},
		bindings: &bindings{bound: map[logicalcluster.Name]bool{consumer: true, otherConsumer: true}},
		reviews:  &reviews{},
	}
	var err error
	if b.pki, err = pki.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	b.kcp = startKcp(t, b.pki)
	return b
}

func (b *bed) options(t *testing.T) *apiserver.Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	serving, proxy := b.serverPair(t, "krop"), b.client(t, pki.RequestHeader, "krop-proxy")

	options := apiserver.NewOptions()
	options.SecureServing.Listener = listener
	options.SecureServing.ServerCert.CertKey.CertFile = serving.CertFile
	options.SecureServing.ServerCert.CertKey.KeyFile = serving.KeyFile
	options.ClientCAFile = b.pki.CAFile(pki.Client)
	options.RequestHeader.ClientCAFile = b.pki.CAFile(pki.RequestHeader)
	options.RequestHeader.AllowedNames = []string{frontProxy}
	options.ShardNames = []string{shard}
	options.ShardRouterNames = []string{router}
	options.MonitoringNames = []string{monitor}
	options.Kubeconfig = b.kubeconfig(t)
	options.ExternalURL = "https://" + b.address
	options.VirtualWorkspaces = apiserver.VirtualWorkspaces{URL: b.kcp.url, ProxyCertFile: proxy.CertFile, ProxyKeyFile: proxy.KeyFile}
	options.Etcd.DataDir = t.TempDir()
	return options
}

// configure comes before anything is stored, as in the product: it bounds the metrics.
func configure(t *testing.T, options *apiserver.Options) *apiserver.Config {
	t.Helper()
	if problems := options.Validate(); len(problems) > 0 {
		t.Fatal(problems)
	}
	config, err := options.Config()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (b *bed) run(t *testing.T, config *apiserver.Config) {
	t.Helper()
	var err error
	b.server, err = config.Complete(apiserver.Dependencies{Catalog: b.catalog, Bindings: b.bindings, Reviewer: b.reviews}).New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- b.server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the server stopped with: %v", err)
		}
	})
}

func (b *bed) waitUntil(t *testing.T, probe string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if answer, err := b.try(nil, http.MethodGet, probe); err == nil && answer.code == http.StatusOK {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s doesn't answer", probe)
}

// serveWidgets puts a namespaced kind with a status into the catalog.
func (b *bed) serveWidgets(t *testing.T) {
	t.Helper()
	b.store = openStore(t, definition())
	b.catalog.Set(servedAs(export, b.store))
	b.catalog.MarkSynced()
}

func openStore(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *kind.Store {
	t.Helper()
	k, err := kind.New(crd)
	if err != nil {
		t.Fatal(err)
	}
	store, err := kind.NewStore(k, kind.StoreOptions{Backend: backend(t), ExportCluster: export.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	if err := store.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func servedAs(key v1alpha1.ExportKey, store *kind.Store) *registry.Served {
	resource := store.Kind.GVR().Resource
	return &registry.Served{
		Export: key, Kind: store.Kind, Program: &engine.Program{},
		Storage: map[string]rest.Storage{resource: mainStorage{store.Main}, resource + "/status": statusStorage{store.Status}},
	}
}

// mainStorage is the generic store, which has all verbs.
type mainStorage struct{ *genericregistry.Store }

var _ rest.StandardStorage = mainStorage{}

// statusStorage can update, which must make no difference to users.
type statusStorage struct{ *genericregistry.Store }

func backend(t *testing.T) *etcd.Backend {
	t.Helper()
	server, err := etcd.Start(t.Context(), etcd.EmbeddedConfig{DataDir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	connected, err := etcd.Connect(t.Context(), etcd.BackendConfig{Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connected.Close)
	return connected
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvr.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList", ShortNames: []string{"wd"}, Categories: []string{"all"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvr.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": text}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"state": text}},
					},
				}},
			}},
		},
	}
}

func (b *bed) client(t *testing.T, authority pki.Authority, name string, groups ...string) *pki.Pair {
	t.Helper()
	pair, err := b.pki.Client(authority, pki.Identity{Name: name, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

func (b *bed) serverPair(t *testing.T, name string) pki.Pair {
	t.Helper()
	pair, err := b.pki.Server(pki.Serving, name)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (b *bed) kubeconfig(t *testing.T) string {
	t.Helper()
	krop := b.client(t, pki.Client, "krop")
	config := clientcmdapi.NewConfig()
	config.Clusters["kcp"] = &clientcmdapi.Cluster{Server: b.kcp.url, CertificateAuthority: b.pki.CAFile(pki.Serving)}
	config.AuthInfos["krop"] = &clientcmdapi.AuthInfo{ClientCertificate: krop.CertFile, ClientKey: krop.KeyFile}
	config.Contexts["kcp"] = &clientcmdapi.Context{Cluster: "kcp", AuthInfo: "krop"}
	config.CurrentContext = "kcp"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// answer is what came back.
type answer struct {
	code   int
	header http.Header
	body   string
}

// get sends one GET exactly as written, and fails the test if nothing comes back.
func (b *bed) get(t *testing.T, who *pki.Pair, path string, headers ...string) answer {
	t.Helper()
	return b.send(t, who, http.MethodGet, path, headers...)
}

func (b *bed) send(t *testing.T, who *pki.Pair, method, path string, headers ...string) answer {
	t.Helper()
	got, err := b.try(who, method, path, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// try writes the request by hand: an HTTP library would tidy path and headers up.
func (b *bed) try(who *pki.Pair, method, path string, headers ...string) (answer, error) {
	connection, err := b.dial(who)
	if err != nil {
		return answer{}, err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n", method, path)
	for _, header := range headers {
		fmt.Fprintf(connection, "%s\r\n", header)
	}
	fmt.Fprint(connection, "\r\n")
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{code: response.StatusCode, header: response.Header, body: string(body)}, err
}

func (b *bed) dial(who *pki.Pair) (*tls.Conn, error) {
	config := &tls.Config{ServerName: "localhost", RootCAs: pool(b.pki.CAFile(pki.Serving))}
	if who != nil {
		pair, err := tls.LoadX509KeyPair(who.CertFile, who.KeyFile)
		if err != nil {
			return nil, err
		}
		// Send it even if the server didn't ask for one of its authority.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return tls.Dial("tcp", b.address, config)
}

// bindings is which clusters are bound to every export.
type bindings struct {
	mu      sync.Mutex
	bound   map[logicalcluster.Name]bool
	unknown bool
}

func (b *bindings) Bound(_ context.Context, _ v1alpha1.ExportKey, cluster logicalcluster.Name) (bound, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bound[cluster], !b.unknown
}

func (b *bindings) set(change func(*bindings)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// reviews answers access reviews, and remembers what was asked last.
type reviews struct {
	mu      sync.Mutex
	allow   func(authorizationv1.SubjectAccessReviewSpec) bool // nil: the claim isn't accepted
	err     error
	asked   int
	last    authorizationv1.SubjectAccessReviewSpec
	cluster logicalcluster.Name
}

func (r *reviews) Review(_ context.Context, _ v1alpha1.ExportKey, cluster logicalcluster.Name, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.last, r.cluster = r.asked+1, spec, cluster
	if r.err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, r.err
	}
	if r.allow == nil {
		return authorizationv1.SubjectAccessReviewStatus{}, apierrors.NewForbidden(
			schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "", fmt.Errorf("not claimed"))
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: r.allow(spec)}, nil
}

func (r *reviews) answerWith(allow func(authorizationv1.SubjectAccessReviewSpec) bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allow, r.err, r.asked = allow, err, 0
}

func (r *reviews) seen() (int, authorizationv1.SubjectAccessReviewSpec, logicalcluster.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked, r.last, r.cluster
}
