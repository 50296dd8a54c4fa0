package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// shard is the common name of the shard's client certificate in the test bed.
const shard = "kcp-shard"

func TestConsumersDoNotSeeEachOther(t *testing.T) {
	provider, one, two := theOffers(t), newConsumer(t, "apart-one"), newConsumer(t, "apart-two")
	watcher, err := two.in(bundles).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer watcher.Stop()
	mine := one.create(bundle("same", map[string]any{"text": "one"}))
	theirs := two.create(bundle("same", map[string]any{"text": "two"}))
	if mine.GetUID() == theirs.GetUID() {
		t.Fatal("one object is served to both")
	}
	event := <-watcher.ResultChan()
	if object := event.Object.(*unstructured.Unstructured); object.GetUID() != theirs.GetUID() {
		t.Errorf("a watch of two tells of %s of another consumer", object.GetUID())
	}
	for consumer, want := range map[actor]string{one: "one", two: "two"} {
		list, err := consumer.Resource(bundles).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(list.Items) != 1 {
			t.Errorf("%s sees %d bundles, want 1", consumer.user, len(list.Items))
		}
		must(t, consumer.has(configMaps, "same", want, "data", "text"))
	}
	if provider.child(configMaps, mine, "far").GetName() == provider.child(configMaps, theirs, "far").GetName() {
		t.Error("two consumers share a child in the provider's workspace")
	}
	must(t, one.in(bundles).Delete(t.Context(), "same", metav1.DeleteOptions{}))
	eventually(t, "one's is gone", func() error { return nothingOf(mine, one, provider) })
	must(t, two.has(configMaps, "same", "two", "data", "text"))
	provider.child(configMaps, theirs, "far")
}

func TestConsumerCannotReachTheWorkspaceOfAnother(t *testing.T) {
	one, two := newConsumer(t, "reach-one"), newConsumer(t, "reach-two")
	one.create(bundle("private", nil))
	config, err := bed.Config(two.user)
	must(t, err)
	config.Host = strings.TrimSuffix(config.Host, two.user.Workspace()) + one.user.Workspace()
	intruder, err := dynamic.NewForConfig(config)
	must(t, err)
	_, err = intruder.Resource(bundles).Namespace(namespace).Get(t.Context(), "private", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the answer is %v, want 403", err)
	}
}

func TestUnboundConsumerIsNotServed(t *testing.T) {
	stranger := newUser(t, "stranger")
	_, err := stranger.in(bundles).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the answer is %v, want 404: nothing is bound", err)
	}
	// not even through the shard, which krop believes otherwise
	code, _ := ask(t, shardClient(t), theEndpoint(t)+"/clusters/"+stranger.cluster()+"/apis/test.example.org/v1alpha1/bundles")
	if code != http.StatusForbidden && code != http.StatusNotFound {
		t.Errorf("the shard is answered %d for a cluster without binding, want 403 or 404", code)
	}
}

func TestKropBelievesOnlyTheShard(t *testing.T) {
	consumer := newConsumer(t, "believes")
	consumer.create(bundle("guarded", nil))
	target := theEndpoint(t) + "/clusters/" + consumer.cluster() + "/apis/test.example.org/v1alpha1/namespaces/default/bundles/guarded"
	if code, body := ask(t, shardClient(t), target); code != http.StatusOK {
		t.Fatalf("the shard is answered %d: %s", code, body)
	}
	callers := map[string]*http.Client{
		"nobody":                       clientWith(t, nil),
		"an ordinary user":             clientOf(t, pki.Client, pki.Identity{Name: string(consumer.user)}),
		"a member of system:masters":   clientOf(t, pki.Client, pki.Identity{Name: "root", Groups: []string{"system:masters"}}),
		"a shard by another authority": clientOf(t, pki.RequestHeader, pki.Identity{Name: shard}),
		"an unlisted proxy":            clientOf(t, pki.RequestHeader, pki.Identity{Name: "some-proxy"}),
	}
	for who, client := range callers {
		for _, forged := range []string{"", shard, "system:admin"} {
			code, body := askAs(t, client, target, forged)
			if code != http.StatusUnauthorized && code != http.StatusForbidden {
				t.Errorf("%s, claiming to be %q, is answered %d: %s", who, forged, code, body)
			}
		}
	}
}

func TestPathsCannotLeaveTheirCluster(t *testing.T) {
	one, two := newConsumer(t, "paths-one"), newConsumer(t, "paths-two")
	one.create(bundle("secret", map[string]any{"text": "of one"}))
	base := theEndpoint(t) + "/clusters/"
	tail := "/apis/test.example.org/v1alpha1/namespaces/default/bundles/secret"
	client := shardClient(t)
	for _, path := range []string{
		two.cluster() + "/../" + one.cluster() + tail,
		two.cluster() + "%2f..%2f" + one.cluster() + tail,
		two.cluster() + "//" + one.cluster() + tail,
		two.cluster() + tail,
		"*" + tail,
		".." + tail,
		"%2e%2e" + tail,
		two.cluster() + "/apis/test.example.org/v1alpha1/namespaces/default/bundles/..%2f..%2f" + one.cluster() + "%2fdefault%2fsecret",
	} {
		if code, body := ask(t, client, base+path); code == http.StatusOK || strings.Contains(body, "of one") {
			t.Errorf("%s is answered %d: %s", path, code, body)
		}
	}
}

// TestExportsAreApart has a second provider with an offering of its own: it gets at nothing of the first one's.
func TestExportsAreApart(t *testing.T) {
	first, consumer := theOffers(t), newConsumer(t, "exports")
	consumer.create(bundle("of-first", nil))
	rival := newUser(t, "rival")
	must(t, bed.PrepareProvider(t.Context(), rival.user))
	rival.kubectl("apply", "-f", testdata("bundles.yaml"))
	rival.kubectl("wait", "--for=condition=Ready", "rgd/bundles", "--timeout=30s")

	// same group, kind and export name, another workspace: the consumer has not bound it
	theirs := strings.Replace(theEndpoint(t), first.cluster(), rival.cluster(), 1)
	target := "/clusters/" + consumer.cluster() + "/apis/test.example.org/v1alpha1/namespaces/default/bundles/of-first"
	if code, body := ask(t, shardClient(t), theirs+target); code == http.StatusOK {
		t.Errorf("the rival's export shows an instance of the first one's: %s", body)
	}
	list, err := asProviderOf(t, rival, first).Resource(bundles).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the rival is answered %v through the first one's virtual workspace, want 403 (%v)", err, list)
	}
	list, err = asProviderOf(t, first, first).Resource(bundles).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, instance := range list.Items {
		if instance.GetName() == "of-first" && instance.GetAnnotations()["kcp.io/cluster"] == consumer.cluster() {
			return
		}
	}
	t.Error("the provider does not see its consumer's instance through its own virtual workspace")
}

// asProviderOf is a client of somebody for the virtual workspace of a provider's export.
func asProviderOf(t *testing.T, who, provider actor) dynamic.Interface {
	t.Helper()
	endpoint := provider.kubectl("get", "apiexportendpointslices.apis.kcp.io", "bundles.test.example.org",
		"-o", "jsonpath={.status.endpoints[0].url}")
	config, err := bed.Config(who.user)
	must(t, err)
	config = rest.CopyConfig(config)
	config.Host = endpoint + "/clusters/*"
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client
}

// theEndpoint is where shards reach the offering.
func theEndpoint(t *testing.T) string {
	t.Helper()
	return theOffers(t).kubectl("get", "blueprintendpointslices.endpoints.krop.opendefense.cloud",
		"bundles.test.example.org", "-o", "jsonpath={.status.endpoints[0].url}")
}

func shardClient(t *testing.T) *http.Client {
	t.Helper()
	return clientOf(t, pki.Client, pki.Identity{Name: shard})
}

// clientOf has a certificate of its own.
func clientOf(t *testing.T, authority pki.Authority, identity pki.Identity) *http.Client {
	t.Helper()
	files, err := bed.PKI().Client(authority, identity)
	must(t, err)
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	must(t, err)
	return clientWith(t, []tls.Certificate{pair})
}

func clientWith(t *testing.T, certificates []tls.Certificate) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(bed.PKI().CAFile(pki.Serving))
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func ask(t *testing.T, client *http.Client, target string) (int, string) {
	t.Helper()
	return askAs(t, client, target, "")
}

// askAs asks with request headers that name somebody. The path is sent as it is.
func askAs(t *testing.T, client *http.Client, target, user string) (int, string) {
	t.Helper()
	parsed, err := url.Parse(target)
	must(t, err)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, target, nil)
	must(t, err)
	request.URL = parsed
	if user != "" {
		request.Header["X-Remote-User"] = []string{user}
		request.Header["x-remote-user"] = []string{user}
		request.Header["X-Remote-Group"] = []string{"system:masters"}
	}
	return send(t, client, request)
}

func send(t *testing.T, client *http.Client, request *http.Request) (int, string) {
	t.Helper()
	response, err := client.Do(request)
	if err != nil {
		// a certificate that is refused ends the connection, which is an answer too
		return http.StatusUnauthorized, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}
