package plane_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/test/testbed"
)

// claiming is an export that offers nothing and asks for ConfigMaps and Secrets.
const claiming = `
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: planes.example.org}
spec:
  permissionClaims:
  - {group: "", resource: configmaps, verbs: ["*"]}
  - {group: "", resource: secrets, verbs: ["*"]}
`

const accepting = `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: planes.example.org}
spec:
  reference: {export: {path: "root:provider", name: planes.example.org}}
  permissionClaims:
  - {group: "", resource: configmaps, verbs: ["*"], selector: {matchAll: true}, state: Accepted}
  - {group: "", resource: secrets, verbs: ["*"], selector: {matchAll: true}, state: Rejected}
`

// slice reads where the export's virtual workspace is, until it knows.
type slice struct {
	provider testbed.Kubectl
	url      string
}

func (s *slice) URL(ctx context.Context, export v1alpha1.ExportKey) (string, error) {
	if s.url != "" {
		return s.url, nil
	}
	found, err := s.provider.Run(ctx, "get", "apiexportendpointslice", export.Name, "-o", "jsonpath={.status.endpoints[0].url}")
	if err != nil || found.Stdout == "" {
		return "", fmt.Errorf("%w: %v", plane.ErrNotReachable, err)
	}
	s.url = found.Stdout
	return s.url, nil
}

// TestConsumersWorkspaceThroughKcp checks on a real kcp what this package takes for granted about an
// export's virtual workspace.
func TestConsumersWorkspaceThroughKcp(t *testing.T) {
	bed, err := testbed.Start(t.Context(), testbed.Options{WithoutHost: true, WithoutKrop: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bed.Stop(); err != nil {
			t.Error(err)
		}
	}()
	config, err := bed.Config(testbed.Provider)
	if err != nil {
		t.Fatal(err)
	}
	shard, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	provider, consumer := bed.Kubectl(testbed.Provider), bed.Kubectl(testbed.Consumer)
	cluster := func(user testbed.User) logicalcluster.Name {
		id, err := bed.Cluster(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		return logicalcluster.Name(id)
	}
	export := v1alpha1.ExportKey{Cluster: cluster(testbed.Provider), Name: "planes.example.org"}
	set, err := plane.New(plane.Config{Kcp: config, VirtualWorkspaces: shard, Endpoints: &slice{provider: provider}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Apply(t.Context(), claiming); err != nil {
		t.Fatal(err)
	}
	bound := cluster(testbed.Consumer)
	eventually(t, func() bool {
		_, err := set.For(t.Context(), v1alpha1.TargetConsumer, export, bound)
		return errors.Is(err, plane.ErrNotReachable)
	})
	if _, err := consumer.Apply(t.Context(), accepting); err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Run(t.Context(), "wait", "apibinding/planes.example.org", "--for=jsonpath={.status.phase}=Bound", "--timeout=30s"); err != nil {
		t.Fatal(err)
	}
	var p plane.Plane
	eventually(t, func() bool {
		p, err = set.For(t.Context(), v1alpha1.TargetConsumer, export, bound)
		if err != nil {
			return false
		}
		_, err = p.Get(t.Context(), plane.Object{GVR: configMaps, Namespace: "default", Name: "missing"})
		return apierrors.IsNotFound(err) && !plane.IsNotServed(err)
	})

	t.Run("dropped keys disappear", func(t *testing.T) { droppedKeys(t, p) })
	t.Run("denials are recognised", func(t *testing.T) { denials(t, set, p, export, cluster(testbed.Consumer2)) })
	t.Run("a watch covers all consumers", func(t *testing.T) { wildcard(t, set, p, export, bound) })
	t.Run("kinds resolve", func(t *testing.T) { workspaceKinds(t, set, export) })
}

func droppedKeys(t *testing.T, p plane.Plane) {
	live, err := p.Create(t.Context(), configMaps, configMap("default", "c", map[string]any{"a": "1"}), write)
	if err != nil {
		t.Fatal(err)
	}
	foreign := live.DeepCopy()
	foreign.Object["data"] = map[string]any{"a": "1", "theirs": "1"}
	if live, err = p.Update(t.Context(), configMaps, foreign, plane.WriteOptions{FieldManager: "other"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"b", "c"} {
		desired := configMap("default", "c", map[string]any{key: "1"})
		if _, err := p.Apply(t.Context(), configMaps, desired, live, plane.WriteOptions{FieldManager: manager, DryRun: true}); err != nil {
			t.Fatal(err)
		}
		if live, err = p.Apply(t.Context(), configMaps, desired, live, write); err != nil {
			t.Fatal(err)
		}
		if got, want := dataOf(t, live), map[string]string{key: "1", "theirs": "1"}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	// Applying the same again comes to rest, or the loop would go round for ever.
	var versions []string
	for range 3 {
		if live, err = p.Apply(t.Context(), configMaps, configMap("default", "c", map[string]any{"c": "1"}), live, write); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, live.GetResourceVersion())
	}
	if versions[1] != versions[2] {
		t.Errorf("applying what is there already writes each time: versions %v", versions)
	}
	stale := live.DeepCopy()
	stale.SetResourceVersion("1")
	if _, err := p.Apply(t.Context(), configMaps, configMap("default", "c", nil), stale, write); !apierrors.IsConflict(err) {
		t.Errorf("apply on another version: %v, want Conflict", err)
	}
	if err := p.Delete(t.Context(), plane.Object{GVR: configMaps, Namespace: "default", Name: "c"}, "another"); !apierrors.IsConflict(err) {
		t.Errorf("delete of another UID: %v, want Conflict", err)
	}
	if err := p.Delete(t.Context(), plane.Object{GVR: configMaps, Namespace: "default", Name: "c"}, live.GetUID()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(t.Context(), configMaps, configMap("default", "c", nil), live, write); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		t.Errorf("apply on what is gone: %v, want Conflict or NotFound", err)
	}
	dry := plane.WriteOptions{FieldManager: manager, DryRun: true}
	if _, err := p.Create(t.Context(), configMaps, configMap("nowhere", "c", nil), dry); !apierrors.IsNotFound(err) || plane.IsNotServed(err) {
		t.Errorf("dry-run in a namespace that isn't there: %v, want NotFound of the namespace", err)
	}
}

func denials(t *testing.T, set *plane.Set, p plane.Plane, export v1alpha1.ExportKey, unbound logicalcluster.Name) {
	_, err := p.Get(t.Context(), plane.Object{GVR: secrets, Namespace: "default", Name: "s"})
	if denial, ok := plane.DeniedBy(err); !ok || denial.Resource != secrets.GroupResource() || denial.Verb != "get" {
		t.Errorf("rejected claim: %+v of %v", denial, err)
	}
	// An empty list in its place would be taken for the truth.
	listed, err := p.List(t.Context(), secrets, "default", labels.Everything(), 10)
	if denial, ok := plane.DeniedBy(err); !ok || denial.Resource != secrets.GroupResource() || denial.Verb != "list" {
		t.Errorf("list with a rejected claim: %d objects, %+v of %v", len(listed), denial, err)
	}
	other, err := set.For(t.Context(), v1alpha1.TargetConsumer, export, unbound)
	if err != nil {
		t.Fatal(err)
	}
	listed, err = other.List(t.Context(), configMaps, "", labels.Everything(), 10)
	if _, ok := plane.DeniedBy(err); !ok {
		t.Errorf("list without a binding: %d objects, %v", len(listed), err)
	}
	_, err = other.Create(t.Context(), configMaps, configMap("default", "c", nil), write)
	if denial, ok := plane.DeniedBy(err); !ok {
		t.Errorf("no binding: %+v of %v", denial, err)
	}
	unclaimed := configMaps
	unclaimed.Resource = "serviceaccounts"
	_, err = p.Get(t.Context(), plane.Object{GVR: unclaimed, Namespace: "default", Name: "s"})
	if _, denied := plane.DeniedBy(err); !denied && !plane.IsNotServed(err) {
		t.Errorf("a kind that isn't claimed: %v, want a denial or not served", err)
	}
	listed, err = p.List(t.Context(), unclaimed, "", labels.Everything(), 10)
	if _, denied := plane.DeniedBy(err); !denied && !plane.IsNotServed(err) {
		t.Errorf("list of a kind that isn't claimed: %d objects, %v", len(listed), err)
	}
}

func wildcard(t *testing.T, set *plane.Set, p plane.Plane, export v1alpha1.ExportKey, cluster logicalcluster.Name) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan *unstructured.Unstructured, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = set.Watch(ctx, v1alpha1.TargetConsumer, export, "planes", configMaps, func(_ watch.EventType, object *unstructured.Unstructured) {
			events <- object
		})
	}()
	created, err := p.Create(t.Context(), configMaps, child("default", "w", "planes", "uid-w"), write)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case object := <-events:
		if object.GetUID() != created.GetUID() || logicalcluster.From(object) != cluster || strings.Contains(object.GetResourceVersion(), "/") {
			t.Errorf("announced %s of %s", object.GetName(), logicalcluster.From(object))
		}
	case <-time.After(eventTimeout):
		t.Error("no event")
	}
	cancel()
	<-ended
}

func workspaceKinds(t *testing.T, set *plane.Set, export v1alpha1.ExportKey) {
	schemas, err := set.Schemas(t.Context(), v1alpha1.TargetConsumer, export)
	if err != nil {
		t.Fatal(err)
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"},
		{Group: "apis.kcp.io", Version: "v1alpha2", Kind: "APIExport"},
	} {
		found, err := schemas.Resolve(t.Context(), gvk)
		if err != nil || len(found.Schema.Properties) == 0 {
			t.Errorf("%s: %v", gvk, err)
		}
	}
	var unknown *plane.UnknownKindError
	if _, err := schemas.Resolve(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}); !errors.As(err, &unknown) {
		t.Errorf("pods, which kcp doesn't serve: %v, want UnknownKindError", err)
	}
}
