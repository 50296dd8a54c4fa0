package testbed

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/manifests"
)

const (
	// tenantTimeout is many times the seconds that kcp takes for a workspace or a binding.
	tenantTimeout = 2 * time.Minute
	// tenantPoll is small beside what kcp takes to make a new right known.
	tenantPoll = 100 * time.Millisecond
	// bindingName and cachedResourceName are those in manifests/provider.
	bindingName        = "krop.opendefense.cloud"
	cachedResourceName = "krop-endpoints"
)

// addWorkspaces makes those that every test bed has.
func (b *Bed) addWorkspaces(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, user := range []User{Provider, Consumer, Consumer2} {
		all.Go(func() error { return b.AddUser(ctx, user) })
	}
	return all.Wait()
}

// AddUser makes a workspace below root with a user of the same name as its administrator, and returns when the
// user can work there. What exists already is left alone.
func (b *Bed) AddUser(ctx context.Context, user User) error {
	b.say("setting up %s", user.Workspace())
	if err := b.issueUser(user); err != nil {
		return err
	}
	admin := b.Kubectl(Admin)
	if err := b.applySetup(ctx, admin, "workspace.yaml", user); err != nil {
		return err
	}
	if err := b.await(ctx, admin, "workspaces.tenancy.kcp.io/"+string(user), "jsonpath={.status.phase}=Ready"); err != nil {
		return err
	}
	inside := "--server=" + b.workspaceURL(user.Workspace())
	if err := b.applySetup(ctx, admin, "owner.yaml", user, inside); err != nil {
		return err
	}
	return b.awaitAccess(ctx, user)
}

// PrepareProvider applies manifests/provider as a provider does, and returns when the provider can publish.
func (b *Bed) PrepareProvider(ctx context.Context, provider User) error {
	b.say("preparing %s with manifests/provider", provider.Workspace())
	kubectl := b.Kubectl(provider)
	folder := filepath.Join(b.options.Checkout, manifests.ProviderFolder)
	if _, err := kubectl.Run(ctx, "apply", "-f", folder); err != nil {
		return err
	}
	if err := b.await(ctx, kubectl, "cachedresources.cache.kcp.io/"+cachedResourceName, "jsonpath={.status.phase}=Ready"); err != nil {
		return err
	}
	return b.await(ctx, kubectl, "apibindings.apis.kcp.io/"+bindingName, "jsonpath={.status.phase}=Bound")
}

// AllowBinding lets a consumer bind every export of a provider.
func (b *Bed) AllowBinding(ctx context.Context, provider, consumer User) error {
	return b.applySetup(ctx, b.Kubectl(provider), "bind.yaml", consumer)
}

// prepareTenants does as provider what the demo's story begins with.
func (b *Bed) prepareTenants(ctx context.Context) error {
	for _, consumer := range []User{Consumer, Consumer2} {
		if err := b.AllowBinding(ctx, Provider, consumer); err != nil {
			return err
		}
	}
	if b.options.WithoutKrop {
		return nil
	}
	return b.PrepareProvider(ctx, Provider)
}

// Cluster is the logical cluster of a user's workspace, by which krop knows it.
func (b *Bed) Cluster(ctx context.Context, user User) (string, error) {
	output, err := b.Kubectl(user).Run(ctx, "get", "logicalclusters.core.kcp.io", "cluster",
		"-o", `jsonpath={.metadata.annotations.kcp\.io/cluster}`)
	return output.Stdout, err
}

// applySetup applies one of the files in setup.
func (b *Bed) applySetup(ctx context.Context, kubectl Kubectl, name string, user User, args ...string) error {
	parsed, err := template.ParseFS(setup, "setup/"+name)
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	var manifests bytes.Buffer
	if err := parsed.Execute(&manifests, map[string]User{"User": user}); err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	_, err = kubectl.Apply(ctx, manifests.String(), args...)
	return err
}

// await waits for a condition of an object.
func (b *Bed) await(ctx context.Context, kubectl Kubectl, object, condition string) error {
	_, err := kubectl.Run(ctx, "wait", "--for="+condition, object, "--timeout="+tenantTimeout.String())
	return err
}

// awaitAccess waits until what a user was just granted is known.
func (b *Bed) awaitAccess(ctx context.Context, user User) error {
	config, err := b.Config(user)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("client of %s: %w", user, err)
	}
	url := b.serverURL(user) + "/api/v1/namespaces"
	var last string
	err = wait.PollUntilContextTimeout(ctx, tenantPoll, tenantTimeout, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		last = response.Status
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("%s has no access to %s (%s): %w", user, user.Workspace(), last, err)
	}
	return nil
}
