package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/test/testbed"
)

// namespace is where everything in the story lives, in each workspace.
const namespace = "default"

// Kinds that the story is about.
var (
	Databases  = schema.GroupVersionResource{Group: "db.example.org", Version: "v1alpha1", Resource: "databases"}
	Servers    = schema.GroupVersionResource{Group: "infra.example.org", Version: "v1", Resource: "databaseservers"}
	Machines   = schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "machines"}
	VPCs       = schema.GroupVersionResource{Group: "network.example.org", Version: "v1", Resource: "vpcs"}
	VMs        = schema.GroupVersionResource{Group: "compute.example.org", Version: "v1", Resource: "vms"}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Blueprints = schema.GroupVersionResource{Group: "krop.opendefense.cloud", Version: "v1alpha1", Resource: "resourcegraphdefinitions"}
	Exports    = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apiexports"}
)

// Scene is where the story is played: a test bed, and what the actors remember.
type Scene struct {
	bed      *testbed.Bed
	checkout string
	env      []string
	kept     map[string]string
	clients  map[testbed.User]dynamic.Interface
}

// NewScene is a scene in a test bed. Files are taken from the checkout.
func NewScene(bed *testbed.Bed, checkout string) (*Scene, error) {
	scene := &Scene{bed: bed, checkout: checkout, kept: map[string]string{}, clients: map[testbed.User]dynamic.Interface{}}
	for _, user := range []testbed.User{testbed.Provider, testbed.Consumer, testbed.Consumer2, testbed.Host} {
		config, err := bed.Config(user)
		if err != nil {
			return nil, err
		}
		if scene.clients[user], err = dynamic.NewForConfig(config); err != nil {
			return nil, fmt.Errorf("client of %s: %w", user, err)
		}
		scene.kept[string(user)] = config.Host
	}
	if _, err := exec.LookPath("diff"); err != nil {
		// kubectl diff runs diff, which not every machine has; git is there
		scene.env = append(scene.env, "KUBECTL_EXTERNAL_DIFF=git diff --no-index")
	}
	return scene, nil
}

// expand puts in what was kept.
func (s *Scene) expand(arg string) string {
	return os.Expand(arg, func(name string) string {
		if value, ok := s.kept[name]; ok {
			return value
		}
		return "$" + name
	})
}

// get reads an object as one of the actors. Blueprints and exports live in no namespace.
func (s *Scene) get(ctx context.Context, as testbed.User, resource schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return s.client(as, resource).Get(ctx, s.expand(name), metav1.GetOptions{})
}

func (s *Scene) list(ctx context.Context, as testbed.User, resource schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
	return s.client(as, resource).List(ctx, metav1.ListOptions{})
}

func (s *Scene) client(as testbed.User, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	if resource == Blueprints || resource == Exports {
		return s.clients[as].Resource(resource)
	}
	return s.clients[as].Resource(resource).Namespace(namespace)
}
