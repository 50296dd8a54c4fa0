package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	cachev1alpha1 "github.com/kcp-dev/sdk/apis/cache/v1alpha1"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// BootstrapConfig says how krop's own workspace is to be set up.
type BootstrapConfig struct {
	// REST is an admin of the parent of the workspace, and of the workspace itself.
	REST *rest.Config
	// ExternalURL is where kcp's shards reach krop: the shards' --shard-virtual-workspace-url.
	ExternalURL string
	// Workspace is the path of krop's own workspace. Empty means DefaultHome.
	Workspace logicalcluster.Path
	// KropUser is the name of krop's user in kcp.
	KropUser string
	// BindGroups are the groups whose members may bind the blueprint kind.
	BindGroups []string
	// Report is told what was done about each object.
	Report func(object, outcome string)
}

// Outcomes that Report is told.
const (
	outcomeCreated    = "created"
	outcomeConfigured = "configured"
	outcomeUnchanged  = "unchanged"
)

// Bootstrap sets up krop's own workspace: the workspace, the endpoint slice's kind and its CachedResource,
// the rights of krop's user, the export of the blueprint kind, who may bind it, and krop's own binding to it,
// through which krop later proves that kcp routes to it. It is idempotent, and returns the export's key.
func Bootstrap(ctx context.Context, config BootstrapConfig) (v1alpha1.ExportKey, error) {
	k, err := newKCP(Config{REST: config.REST, ExternalURL: config.ExternalURL, Home: config.Workspace})
	if err != nil {
		return v1alpha1.ExportKey{}, err
	}
	if _, err := parseURL(config.ExternalURL); err != nil {
		return v1alpha1.ExportKey{}, fmt.Errorf("krop's address for shards: %w", err)
	}
	b := &bootstrap{kcp: k, config: config}
	cluster, err := b.ensureWorkspace(ctx)
	if err != nil {
		return v1alpha1.ExportKey{}, err
	}
	if b.home, err = k.workspace(cluster.Path()); err != nil {
		return v1alpha1.ExportKey{}, err
	}
	export := v1alpha1.ExportKey{Cluster: cluster, Name: HomeExport}
	for _, step := range []func(context.Context, v1alpha1.ExportKey) error{b.prepare, b.offer, b.bind, b.awaitCache} {
		if err := step(ctx, export); err != nil {
			return v1alpha1.ExportKey{}, err
		}
	}
	return export, nil
}

type bootstrap struct {
	kcp    *kcp
	config BootstrapConfig
	home   *workspace
}

func (b *bootstrap) report(object, outcome string) {
	if b.config.Report != nil {
		b.config.Report(object, outcome)
	}
}

// bootstrapPoll is how often something that kcp has to do first is looked at.
const bootstrapPoll = 200 * time.Millisecond

// poll looks until done says so, or ctx ends; then the error says what was missing.
func poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	for {
		ok, err := done(ctx)
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(bootstrapPoll):
		}
	}
}

// ensureWorkspace creates krop's workspace if it is absent, waits until it is ready and returns its logical cluster.
func (b *bootstrap) ensureWorkspace(ctx context.Context) (logicalcluster.Name, error) {
	parent, ok := b.kcp.home.Parent()
	if !ok {
		return "", fmt.Errorf("krop's workspace %q has no parent: expected a path like %s", b.kcp.home, DefaultHome)
	}
	above, err := b.kcp.workspace(parent)
	if err != nil {
		return "", err
	}
	workspaces, name := above.kcp.TenancyV1alpha1().Workspaces(), b.kcp.home.Base()
	err = poll(ctx, "kcp to serve workspaces in "+parent.String(), func(ctx context.Context) (bool, error) {
		_, err := workspaces.List(ctx, metav1.ListOptions{Limit: 1})
		return served(err)
	})
	if err != nil {
		return "", err
	}
	outcome := outcomeUnchanged
	if _, err := workspaces.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		outcome = outcomeCreated
		// Of the type that has no children: nothing else should live here.
		wanted := &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		wanted.Spec.Type = &tenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: logicalcluster.NewPath("root").String()}
		if _, err := workspaces.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("workspace %s: %w", b.kcp.home, err)
		}
	} else if err != nil {
		return "", fmt.Errorf("workspace %s: %w", b.kcp.home, err)
	}
	var cluster logicalcluster.Name
	err = poll(ctx, "workspace "+b.kcp.home.String(), func(ctx context.Context) (bool, error) {
		found, err := workspaces.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		cluster = logicalcluster.Name(found.Spec.Cluster)
		return found.Status.Phase == corev1alpha1.LogicalClusterPhaseReady && cluster != "", nil
	})
	b.report("workspace/"+b.kcp.home.String(), outcome)
	return cluster, err
}

// prepare applies what the export builds on.
func (b *bootstrap) prepare(ctx context.Context, _ v1alpha1.ExportKey) error {
	for _, manifest := range []string{manifests.EndpointSliceCRD, manifests.CachedResource, manifests.ServerRights, manifests.Binders} {
		if err := b.applyManifest(ctx, manifest); err != nil {
			return err
		}
	}
	return poll(ctx, "the kind of the endpoint slices", func(ctx context.Context) (bool, error) {
		_, err := b.home.dynamic.Resource(endpointSlices).List(ctx, metav1.ListOptions{Limit: 1})
		return served(err)
	})
}

// served says whether a list shows that its kind is served. Other errors are none that waiting would mend.
func served(err error) (bool, error) {
	if isUnknownResource(err) {
		return false, nil
	}
	return err == nil, err
}

// offer publishes the blueprint kind, as any blueprint's kind is published.
func (b *bootstrap) offer(ctx context.Context, export v1alpha1.ExportKey) error {
	offer, err := homeOffer(export)
	if err != nil {
		return err
	}
	changed := false
	err = poll(ctx, "kcp to give the export "+export.Name+" an identity", func(ctx context.Context) (bool, error) {
		done, err := publish(ctx, b.kcp, offer, forReal)
		changed = changed || done.changed
		if apierrors.IsTimeout(err) {
			return false, nil // unlike a request, a bootstrap has as long as it was given
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("publishing the blueprint kind: %w", err)
	}
	outcome := outcomeUnchanged
	if changed {
		outcome = outcomeConfigured
	}
	b.report("apiexport.apis.kcp.io/"+export.Name, outcome)
	return nil
}

// bind binds the export in its own workspace. That it becomes Bound does not need krop to run.
func (b *bootstrap) bind(ctx context.Context, export v1alpha1.ExportKey) error {
	if err := b.applyManifest(ctx, manifests.Binding); err != nil {
		return err
	}
	return poll(ctx, "krop's own binding to "+export.Name, func(ctx context.Context) (bool, error) {
		found, err := b.home.kcp.ApisV1alpha2().APIBindings().Get(ctx, export.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return found.Status.Phase == apisv1alpha2.APIBindingPhaseBound, nil
	})
}

// awaitCache waits until endpoint slices are brought to the cache server. Without the feature gate kcp accepts
// the CachedResource and never looks at it.
func (b *bootstrap) awaitCache(ctx context.Context, _ v1alpha1.ExportKey) error {
	what := "the CachedResource " + cachedResourceName + " (is kcp's feature gate CacheAPIs on?)"
	return poll(ctx, what, func(ctx context.Context) (bool, error) {
		found, err := b.home.kcp.CacheV1alpha1().CachedResources().Get(ctx, cachedResourceName, metav1.GetOptions{})
		return err == nil && found.Status.Phase == cachev1alpha1.CachedResourcePhaseReady, err
	})
}

func (b *bootstrap) applyManifest(ctx context.Context, name string) error {
	objects, err := manifests.Objects(name)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := b.customize(object); err != nil {
			return fmt.Errorf("manifest %s: %w", name, err)
		}
		outcome, err := applyObject(ctx, b.home, object)
		if err != nil {
			return fmt.Errorf("manifest %s: %s: %w", name, object.GetName(), err)
		}
		b.report(kindName(object), outcome)
	}
	return nil
}

// customize replaces what the manifests say about users, groups and krop's workspace by what was configured.
func (b *bootstrap) customize(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "APIBinding":
		return unstructured.SetNestedField(object.Object, b.kcp.home.String(), "spec", "reference", "export", "path")
	case "ClusterRoleBinding":
		return unstructured.SetNestedSlice(object.Object, b.subjects(object.GetName()), "subjects")
	default:
		return nil
	}
}

func (b *bootstrap) subjects(role string) []any {
	subject := func(kind, name string) any {
		return map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name}
	}
	if role != bindersRole {
		return []any{subject(rbacv1.UserKind, b.config.KropUser)}
	}
	groups := make([]any, 0, len(b.config.BindGroups))
	for _, group := range b.config.BindGroups {
		groups = append(groups, subject(rbacv1.GroupKind, group))
	}
	return groups
}

// bindersRole is the role in manifests.Binders.
const bindersRole = "krop-binder"
