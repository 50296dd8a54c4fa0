package publish

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// identities are the API identities that a workspace knows: those it has bound, and those it exports.
type identities map[schema.GroupResource]string

// identitiesIn reads them. What is bound wins over what is exported: it is what the workspace itself serves
// under that name, so also what the author of a blueprint sees.
func identitiesIn(ctx context.Context, w *workspace) (identities, error) {
	found := identities{}
	exports, err := w.kcp.ApisV1alpha2().APIExports().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explained(err, w.cluster, "list", apiExports)
	}
	for _, export := range exports.Items {
		for _, resource := range export.Spec.Resources {
			if export.Status.IdentityHash != "" {
				found[schema.GroupResource{Group: resource.Group, Resource: resource.Name}] = export.Status.IdentityHash
			}
		}
	}
	bindings, err := w.kcp.ApisV1alpha2().APIBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explained(err, w.cluster, "list", apiBindings)
	}
	for _, binding := range bindings.Items {
		for _, bound := range binding.Status.BoundResources {
			found[schema.GroupResource{Group: bound.Group, Resource: bound.Resource}] = bound.Schema.IdentityHash
		}
	}
	return found, nil
}

// builtin are the resources that can be claimed without an identity, as of kcp v0.32.
var builtin = func() map[schema.GroupResource]bool {
	groups := map[string][]string{
		"": {"configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts"},
		"admissionregistration.k8s.io": {
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
		},
		"apiextensions.k8s.io":      {"customresourcedefinitions"},
		"apis.kcp.io":               {"apibindings", "apiexports", "apiresourceschemas"},
		"authorization.k8s.io":      {"localsubjectaccessreviews", "subjectaccessreviews"},
		"certificates.k8s.io":       {"certificatesigningrequests"},
		"coordination.k8s.io":       {"leases"},
		"core.kcp.io":               {"logicalclusters"},
		"events.k8s.io":             {"events"},
		"rbac.authorization.k8s.io": {"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
	}
	resources := map[schema.GroupResource]bool{}
	for group, names := range groups {
		for _, name := range names {
			resources[schema.GroupResource{Group: group, Resource: name}] = true
		}
	}
	return resources
}()
