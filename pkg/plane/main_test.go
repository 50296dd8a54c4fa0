package plane_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

var (
	server     *planetest.Server
	export     = v1alpha1.ExportKey{Cluster: "provider1", Name: "databases.example.org"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

const manager = "krop-1234"

func TestMain(m *testing.M) {
	started, err := planetest.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server = started
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

// endpoint is the virtual workspace of one export, once it has one.
type endpoint struct{ url string }

func (e endpoint) URL(context.Context, v1alpha1.ExportKey) (string, error) {
	if e.url == "" {
		return "", fmt.Errorf("no endpoint yet: %w", plane.ErrNotReachable)
	}
	return e.url, nil
}

// workspaces are all planes, with the admin as krop's user, and a namespace of the test's own.
func workspaces(t *testing.T) (*plane.Set, *planetest.Workspaces, string) {
	t.Helper()
	proxy := planetest.NewWorkspaces(t, server.Admin)
	set, err := plane.New(plane.Config{
		Kcp:       proxy.User(server.Admin),
		Host:      server.Admin,
		Endpoints: endpoint{proxy.URL + "/services/apiexport/provider1/databases.example.org"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, proxy, namespace(t)
}

func namespace(t *testing.T) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Admin)
	if err != nil {
		t.Fatal(err)
	}
	created, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.Name
}

func planeFor(t *testing.T, set *plane.Set, target v1alpha1.Target) plane.Plane {
	t.Helper()
	p, err := set.For(t.Context(), target, export, "consumer1")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func configMap(namespace, name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"data":     data,
	}}
}

func dataOf(t *testing.T, object *unstructured.Unstructured) map[string]string {
	t.Helper()
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	return data
}
