package apiserver

import (
	"context"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Audit annotations: the path that audit sees has lost both, since it is stripped before.
const (
	auditExport  = "krop.opendefense.cloud/export"
	auditCluster = "krop.opendefense.cloud/cluster"
)

// acceptReviewClaim is what a consumer has to do so that its users can come directly.
const acceptReviewClaim = "to reach this API directly, accept the permission claim " +
	"{group: authorization.k8s.io, resource: subjectaccessreviews, verbs: [create]} in the workspace's APIBinding, or go through kcp"

// access is what has to hold before a kind is touched: the export is served, the cluster is bound to it,
// and a user who comes directly may do this in the workspace.
type access struct {
	catalog  Catalog
	bindings Bindings
	reviewer Reviewer
}

// check returns what is served, or why the caller gets none of it.
func (a access) check(r *http.Request) (*registry.Served, error) {
	ctx := r.Context()
	found, who := routeFrom(ctx), callerFrom(ctx)
	audit.AddAuditAnnotations(ctx, auditExport, found.export.String(), auditCluster, found.cluster.String())

	served, err := a.served(found, who)
	if err != nil {
		return nil, err
	}
	if err := a.bound(ctx, found); err != nil {
		return nil, err
	}
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := a.review(ctx, attributes); err != nil {
		return nil, err
	}
	return served, nil
}

func (a access) served(found *route, who *caller) (*registry.Served, error) {
	if served, ok := a.catalog.Lookup(found.export); ok {
		return served, nil
	}
	if !a.catalog.Synced() {
		return nil, notYet("the blueprints are still being loaded")
	}
	if who.isShard() && a.catalog.Held(found.export) {
		return nil, notYet("the export's blueprint can't be loaded now; see its conditions")
	}
	if !who.isShard() { // no different from an export that isn't bound: which exports exist is not theirs to know
		return nil, notBound(found)
	}
	return nil, notServed("no such export")
}

func (a access) bound(ctx context.Context, found *route) error {
	if found.wildcard() {
		return nil
	}
	bound, known := a.bindings.Bound(ctx, found.export, found.cluster)
	if !known {
		return notYet("the bindings of the export are still being loaded")
	}
	if !bound {
		return notBound(found)
	}
	return nil
}

// notBound is not a 404, which would read as proof that an object is gone.
func notBound(found *route) error {
	return forbidden("the logical cluster %q has no binding to the APIExport %q", found.cluster, found.export.Name)
}

// review asks the workspace about a user who came directly. A shard has asked already.
func (a access) review(ctx context.Context, attributes authorizer.Attributes) error {
	found, who := routeFrom(ctx), callerFrom(ctx)
	if who.isShard() {
		return nil
	}
	if a.reviewer == nil {
		return forbidden(acceptReviewClaim)
	}
	answer, err := a.reviewer.Review(ctx, found.export, found.cluster, reviewSpec(who, attributes))
	switch {
	case apierrors.IsForbidden(err), plane.IsNotServed(err): // 404: the export was published without the claim
		return forbidden("user %q can't be authorized in the workspace: %s", who.GetName(), acceptReviewClaim)
	case err != nil:
		klog.FromContext(ctx).Error(err, "Access could not be reviewed", "export", found.export, "cluster", found.cluster)
		return notYet("access can't be reviewed in the workspace now")
	case !answer.Allowed || answer.Denied:
		return forbidden("user %q cannot %s %s in the workspace", who.GetName(), attributes.GetVerb(), what(attributes))
	}
	return nil
}

// Authorize implements authorizer.Authorizer for what shows only within a write: that an apply would create.
func (a access) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if err := a.review(ctx, attributes); err != nil {
		return authorizer.DecisionDeny, err.Error(), nil
	}
	return authorizer.DecisionAllow, "", nil
}

func what(attributes authorizer.Attributes) string {
	if !attributes.IsResourceRequest() {
		return "path " + attributes.GetPath()
	}
	resource := attributes.GetResource()
	if subresource := attributes.GetSubresource(); subresource != "" {
		resource += "/" + subresource
	}
	return resource + "." + attributes.GetAPIGroup()
}

func reviewSpec(who *caller, attributes authorizer.Attributes) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   who.GetName(),
		UID:    who.GetUID(),
		Groups: who.GetGroups(),
		Extra:  map[string]authorizationv1.ExtraValue{},
	}
	for key, values := range who.GetExtra() {
		spec.Extra[key] = values
	}
	if !attributes.IsResourceRequest() {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: attributes.GetPath(), Verb: attributes.GetVerb()}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace:   attributes.GetNamespace(),
		Verb:        attributes.GetVerb(),
		Group:       attributes.GetAPIGroup(),
		Version:     attributes.GetAPIVersion(),
		Resource:    attributes.GetResource(),
		Subresource: attributes.GetSubresource(),
		Name:        attributes.GetName(),
	}
	return spec
}
