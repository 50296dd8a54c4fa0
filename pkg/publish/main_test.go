package publish_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/test/testbed"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

// patience is many times what kcp takes for a binding (some 5 s).
const patience = time.Minute

// world is a real kcp in which krop's workspace is set up and the provider is prepared. In krop's place
// stands a server that answers with empty lists.
type world struct {
	bed      *testbed.Bed
	standIn  *standIn
	external string
	krop     *rest.Config
	home     v1alpha1.ExportKey
}

var (
	theWorld *world
	worldErr error
	once     sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if theWorld != nil {
		theWorld.stop()
	}
	os.Exit(code)
}

// start starts the world when the first test needs it, and lets the test run beside others: kcp lets each
// binding wait for seconds.
func start(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	once.Do(func() { theWorld, worldErr = newWorld() })
	if worldErr != nil {
		t.Fatal(worldErr)
	}
	return theWorld
}

func newWorld() (*world, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	bed, err := testbed.Start(ctx, testbed.Options{WithoutKrop: true, WithoutHost: true})
	if err != nil {
		return nil, err
	}
	w := &world{bed: bed}
	for _, step := range []func(context.Context) error{w.findExternalURL, w.serve, w.addKrop, w.bootstrap} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, w.stop())
		}
	}
	if err := bed.PrepareProvider(ctx, testbed.Provider); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

func (w *world) stop() error {
	if w.standIn != nil {
		w.standIn.close()
	}
	return w.bed.Stop()
}

func (w *world) findExternalURL(ctx context.Context) error {
	output, err := w.bed.Kubectl(testbed.Admin).Run(ctx, "get", "shards", "root", "-o", "jsonpath={.spec.virtualWorkspaceURL}")
	w.external = output.Stdout
	return err
}

func (w *world) serve(context.Context) error {
	serving, err := w.bed.PKI().Server(pki.Serving, "stand-in")
	if err != nil {
		return err
	}
	location, err := url.Parse(w.external)
	if err != nil {
		return err
	}
	w.standIn, err = newStandIn("127.0.0.1:"+location.Port(), serving)
	return err
}

// addKrop makes krop's user: an ordinary one, without any group.
func (w *world) addKrop(context.Context) error {
	admin, err := w.bed.Config(testbed.Admin)
	if err != nil {
		return err
	}
	pair, err := w.bed.PKI().Client(pki.Client, pki.Identity{Name: "krop"})
	if err != nil {
		return err
	}
	w.krop = rest.CopyConfig(admin)
	w.krop.CertData, w.krop.KeyData = nil, nil
	w.krop.CertFile, w.krop.KeyFile = pair.CertFile, pair.KeyFile
	return nil
}

func (w *world) bootstrap(ctx context.Context) error {
	var err error
	w.home, err = publish.Bootstrap(ctx, w.bootstrapConfig(nil))
	return err
}

func (w *world) bootstrapConfig(report func(object, outcome string)) publish.BootstrapConfig {
	admin, err := w.bed.Config(testbed.Admin)
	if err != nil {
		panic(err) // it could be read when the world began
	}
	return publish.BootstrapConfig{
		REST: admin, ExternalURL: w.external, KropUser: "krop", BindGroups: []string{"system:authenticated"}, Report: report,
	}
}

// config is krop's.
func (w *world) config() publish.Config {
	return publish.Config{REST: w.krop, ExternalURL: w.external}
}

func (w *world) publisher(t *testing.T) *publish.Publisher {
	t.Helper()
	publisher, err := publish.New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	return publisher
}

func (w *world) cluster(t *testing.T, user testbed.User) logicalcluster.Name {
	t.Helper()
	cluster, err := w.bed.Cluster(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return logicalcluster.Name(cluster)
}

// kubectl runs kubectl and fails the test if kubectl fails.
func (w *world) kubectl(t *testing.T, user testbed.User, args ...string) string {
	t.Helper()
	output, err := w.bed.Kubectl(user).Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output.Stdout
}

func (w *world) apply(t *testing.T, user testbed.User, manifest string) {
	t.Helper()
	if _, err := w.bed.Kubectl(user).Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

// program is a blueprint's of root:provider: a namespaced kind that composes ConfigMaps for consumers.
func (w *world) program(t *testing.T, plural, kind string, nodes ...engine.Node) *engine.Program {
	t.Helper()
	if nodes == nil {
		nodes = []engine.Node{{ID: "config", Target: v1alpha1.TargetConsumer, GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}}
	}
	return &engine.Program{
		Blueprint: plural,
		Export:    v1alpha1.ExportKey{Cluster: w.cluster(t, testbed.Provider), Name: plural + ".demo.example.org"},
		SpecHash:  "0123456789abcdef",
		CRD:       definition(plural, kind, "integer"),
		Nodes:     nodes,
	}
}

// definition has one spec field, size, of the given type.
func definition(plural, kind, size string) *apiextensionsv1.CustomResourceDefinition {
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
	}
	root := object(map[string]apiextensionsv1.JSONSchemaProps{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		"spec":   object(map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: size}}),
		"status": object(nil),
	})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = plural + ".demo.example.org"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "demo.example.org",
		Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1alpha1", Served: true, Storage: true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}
	return crd
}

// publishAll publishes a program with the claims that are derived from it.
func (w *world) publishAll(t *testing.T, program *engine.Program) []v1alpha1.PermissionClaim {
	t.Helper()
	publisher := w.publisher(t)
	claims, errs, err := publisher.Claims(t.Context(), program, place)
	if err != nil || len(errs) > 0 {
		t.Fatalf("claims: %v, %v", errs, err)
	}
	if _, err := publisher.Publish(t.Context(), program, claims); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := publisher.Unpublish(context.Background(), program.Export, program.Blueprint); err != nil {
			t.Error(err)
		}
	})
	return claims
}

// place is where a node stands in a blueprint that doesn't exist.
func place(id v1alpha1.NodeID) *field.Path { return field.NewPath("spec", "resources").Key(string(id)) }

// bind binds an export of root:provider in a consumer's workspace, accepts these claims, and waits until it is bound.
func (w *world) bind(t *testing.T, user testbed.User, export string, claims []v1alpha1.PermissionClaim) {
	t.Helper()
	w.apply(t, user, bindingManifest(export, claims))
	t.Cleanup(func() {
		_, err := w.bed.Kubectl(user).Run(context.Background(), "delete", "apibinding", export, "--ignore-not-found")
		if err != nil {
			t.Error(err)
		}
	})
	w.kubectl(t, user, "wait", "apibinding/"+export, "--for=jsonpath={.status.phase}=Bound", "--timeout="+patience.String())
}

func bindingManifest(export string, claims []v1alpha1.PermissionClaim) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: %s}
spec:
  reference: {export: {path: "root:provider", name: %s}}
  permissionClaims:
`, export, export)
	for _, claim := range claims {
		fmt.Fprintf(&b, "  - {group: %q, resource: %s, identityHash: %q, verbs: [\"%s\"], state: Accepted, selector: {matchAll: true}}\n",
			claim.Group, claim.Resource, claim.IdentityHash, strings.Join(claim.Verbs, `", "`))
	}
	return b.String()
}

// eventually waits until done, and fails the test with what it last said.
func eventually(t *testing.T, what string, done func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, last := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, patience, last)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
