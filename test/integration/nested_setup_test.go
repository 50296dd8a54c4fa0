package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/test/testbed"
)

// layer is a blueprint of which instances are children of the next one's instances, each of a provider of its own.
type layer struct {
	provider testbed.User
	resource schema.GroupVersionResource
	kind     string
}

func nestedResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "nested.example.org", Version: "v1alpha1", Resource: name}
}

var (
	leaves   = layer{"leafers", nestedResource("leaves"), "Leaf"}
	branches = layer{"branchers", nestedResource("branches"), "Branch"}
	trees    = layer{"treers", nestedResource("trees"), "Tree"}
)

func (l layer) export() string { return l.resource.GroupResource().String() }

// nestedReady publishes the three, each provider having bound the one below.
var nestedReady = sync.OnceValue(func() error {
	ctx := context.Background()
	var below *layer
	for _, l := range []layer{leaves, branches, trees} {
		if err := publishLayer(ctx, l, below); err != nil {
			return err
		}
		below = &l
	}
	return nil
})

func publishLayer(ctx context.Context, l layer, below *layer) error {
	if err := bed.AddUser(ctx, l.provider); err != nil {
		return err
	}
	if err := bed.PrepareProvider(ctx, l.provider); err != nil {
		return err
	}
	kubectl := bed.Kubectl(l.provider)
	if below != nil {
		if err := bindLayer(ctx, l.provider, *below); err != nil {
			return err
		}
	}
	if _, err := kubectl.Run(ctx, "apply", "-f", testdata("nested/"+l.resource.Resource+".yaml")); err != nil {
		return err
	}
	_, err := kubectl.Run(ctx, "wait", "--for=condition=Published", "rgd/"+l.resource.Resource, "--timeout=60s")
	return err
}

// bindLayer binds a layer's export for somebody, accepting all that it claims but the resources named.
func bindLayer(ctx context.Context, user testbed.User, l layer, rejected ...string) error {
	if err := bed.AllowBinding(ctx, l.provider, user); err != nil {
		return err
	}
	manifest, err := layerBinding(ctx, l, rejected)
	if err != nil {
		return err
	}
	kubectl := bed.Kubectl(user)
	if _, err := kubectl.Apply(ctx, manifest); err != nil {
		return err
	}
	if _, err := kubectl.Run(ctx, "wait", "--for=condition=Ready", "apibinding/"+l.resource.Resource, "--timeout=60s"); err != nil {
		return err
	}
	_, err = kubectl.Run(ctx, "get", l.export())
	return err
}

// layerBinding is a binding to what the blueprint's status says that consumers are asked for.
func layerBinding(ctx context.Context, l layer, rejected []string) (string, error) {
	said, err := bed.Kubectl(l.provider).Run(ctx, "get", "rgd", l.resource.Resource, "-o", "jsonpath={.status.permissionClaims}")
	if err != nil {
		return "", err
	}
	var claims []map[string]any
	if err := json.Unmarshal([]byte(said.Stdout), &claims); err != nil {
		return "", fmt.Errorf("claims of %s: %w", l.export(), err)
	}
	for _, claim := range claims {
		claim["selector"], claim["state"] = map[string]any{"matchAll": true}, "Accepted"
		for _, resource := range rejected {
			if claim["resource"] == resource {
				claim["state"] = "Rejected"
			}
		}
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": map[string]any{"name": l.resource.Resource},
		"spec": map[string]any{
			"reference":        map[string]any{"export": map[string]any{"path": l.provider.Workspace(), "name": l.export()}},
			"permissionClaims": claims,
		},
	})
	return string(manifest), err
}

// newGrower is a consumer who has bound all three layers.
func newGrower(t *testing.T, name string) actor {
	t.Helper()
	must(t, nestedReady())
	user := testbed.User(name)
	must(t, bed.AddUser(t.Context(), user))
	for _, l := range []layer{leaves, branches, trees} {
		must(t, bindLayer(t.Context(), user, l))
	}
	return as(t, user)
}

// nestedInstance is one of a layer.
func nestedInstance(l layer, name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": l.resource.GroupVersion().String(),
		"kind":       l.kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       map[string]any{"text": text},
	}}
}

// grows makes a tree that must be accepted.
func (a actor) grows(name, text string) *unstructured.Unstructured {
	a.t.Helper()
	tree, err := a.in(trees.resource).Create(a.t.Context(), nestedInstance(trees, name, text), metav1.CreateOptions{})
	must(a.t, err)
	return tree
}

// names of what a tree consists of.
func branchOf(tree string) string { return tree + "-branch" }
func leafOf(tree string) string   { return branchOf(tree) + "-leaf" }
func mapOf(tree string) string    { return leafOf(tree) + "-leaf" }

// writesToken does what a controller of the provider of leaves would do.
func writesToken(t *testing.T, consumer actor, tree, token string) {
	t.Helper()
	leafer := as(t, leaves.provider)
	far := leafer.child(configMaps, consumer.get(leaves.resource, leafOf(tree)), "far")
	leafer.patch(configMaps, far.GetName(), fmt.Sprintf(`{"data":{"token":%q}}`, token))
}

// shownTo says whether an object has a label by which kcp shows it to an export.
func shownTo(object *unstructured.Unstructured) bool {
	for key := range object.GetLabels() {
		if strings.HasPrefix(key, "claimed.internal.apis.kcp.io/") {
			return true
		}
	}
	return false
}
