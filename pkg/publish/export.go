package publish

import (
	"context"
	"fmt"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apply "github.com/kcp-dev/sdk/client/applyconfiguration/apis/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// ownedExport reads the offer's export: nil if there is none, Conflict if it belongs to somebody else.
func ownedExport(ctx context.Context, w *workspace, o offer) (*apisv1alpha2.APIExport, error) {
	export, err := w.kcp.ApisV1alpha2().APIExports().Get(ctx, o.export.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explained(err, w.cluster, "get", apiExports)
	}
	if owner := export.Labels[v1alpha1.LabelBlueprint]; owner != o.owner {
		return nil, apierrors.NewConflict(apiExports, o.export.Name, notOurs(owner))
	}
	return export, nil
}

func notOurs(owner string) error {
	if owner == "" {
		return fmt.Errorf("it exists already and was not published by krop")
	}
	return fmt.Errorf("it is published by the blueprint %q already", owner)
}

// exportWrite is what an export is now, and the schema that it should offer.
type exportWrite struct {
	existing *apisv1alpha2.APIExport // nil if there is none
	schema   string
	mode     mode
}

// ensureExport makes the export offer the schema with the claims. What it offers otherwise is removed: the
// export is the blueprint's alone.
func ensureExport(ctx context.Context, w *workspace, o offer, write exportWrite) (*apisv1alpha2.APIExport, bool, error) {
	if write.existing != nil && offers(write.existing, o, write.schema) {
		return write.existing, false, nil
	}
	spec := apply.APIExportSpec().WithResources(resourceOf(o, write.schema))
	for _, claim := range o.claims {
		spec.WithPermissionClaims(claimOf(claim))
	}
	export := apply.APIExport(o.export.Name).WithLabels(map[string]string{v1alpha1.LabelBlueprint: o.owner}).WithSpec(spec)
	// Forced, because krop is the owner; ownedExport has seen to it that it is.
	applied, err := w.kcp.ApisV1alpha2().APIExports().Apply(ctx, export, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: write.mode})
	return applied, true, explained(err, w.cluster, "patch and create", apiExports)
}

func resourceOf(o offer, schema string) *apply.ResourceSchemaApplyConfiguration {
	virtual := apply.ResourceSchemaStorageVirtual().WithReference(reference(o.export)).WithIdentityHash(virtualIdentity(o.export))
	return apply.ResourceSchema().
		WithName(o.crd.Spec.Names.Plural).WithGroup(o.crd.Spec.Group).WithSchema(schema).
		WithStorage(apply.ResourceSchemaStorage().WithVirtual(virtual))
}

func reference(export v1alpha1.ExportKey) corev1.TypedLocalObjectReference {
	return corev1.TypedLocalObjectReference{APIGroup: ptr.To(endpointSliceKind.Group), Kind: endpointSliceKind.Kind, Name: export.Name}
}

// virtualIdentity is any string that no other export has; kcp looks the export up by it.
func virtualIdentity(export v1alpha1.ExportKey) string { return digest([]byte(export.String())) }

func claimOf(claim v1alpha1.PermissionClaim) *apply.PermissionClaimApplyConfiguration {
	return apply.PermissionClaim().WithGroup(claim.Group).WithResource(claim.Resource).
		WithIdentityHash(claim.IdentityHash).WithVerbs(claim.Verbs...)
}

// offers says whether the export is as it should be.
func offers(export *apisv1alpha2.APIExport, o offer, schema string) bool {
	resources := []apisv1alpha2.ResourceSchema{{
		Name:   o.crd.Spec.Names.Plural,
		Group:  o.crd.Spec.Group,
		Schema: schema,
		Storage: apisv1alpha2.ResourceSchemaStorage{Virtual: &apisv1alpha2.ResourceSchemaStorageVirtual{
			Reference:    reference(o.export),
			IdentityHash: virtualIdentity(o.export),
		}},
	}}
	claims := make([]apisv1alpha2.PermissionClaim, 0, len(o.claims))
	for _, claim := range o.claims {
		claims = append(claims, kcpClaim(claim))
	}
	return equality.Semantic.DeepEqual(export.Spec.Resources, resources) &&
		equality.Semantic.DeepEqual(export.Spec.PermissionClaims, claims)
}

func kcpClaim(claim v1alpha1.PermissionClaim) apisv1alpha2.PermissionClaim {
	return apisv1alpha2.PermissionClaim{
		GroupResource: apisv1alpha2.GroupResource{Group: claim.Group, Resource: claim.Resource},
		Verbs:         claim.Verbs,
		IdentityHash:  claim.IdentityHash,
	}
}

func kropClaim(claim apisv1alpha2.PermissionClaim) v1alpha1.PermissionClaim {
	return v1alpha1.PermissionClaim{Group: claim.Group, Resource: claim.Resource, Verbs: claim.Verbs, IdentityHash: claim.IdentityHash}
}
