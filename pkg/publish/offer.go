package publish

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// offer is one kind to be published: a blueprint's, or the blueprint kind itself.
type offer struct {
	export   v1alpha1.ExportKey
	owner    string // value of v1alpha1.LabelBlueprint: who may write the published objects
	specHash string
	crd      *apiextensionsv1.CustomResourceDefinition
	claims   []v1alpha1.PermissionClaim
}

func offerOf(program *engine.Program, claims []v1alpha1.PermissionClaim) offer {
	return offer{
		export:   program.Export,
		owner:    engine.BlueprintLabel(program.Blueprint),
		specHash: program.SpecHash,
		crd:      program.CRD,
		claims:   claims,
	}
}

// homeOffer is the blueprint kind. It claims nothing: what krop does in a provider's workspace it does with
// the rights that the provider's manifest grants its user, which the provider can trim kind by kind.
func homeOffer(export v1alpha1.ExportKey) (offer, error) {
	definition, err := manifests.Blueprint()
	if err != nil {
		return offer{}, err
	}
	spec, err := json.Marshal(definition.Spec)
	if err != nil {
		return offer{}, fmt.Errorf("definition of the blueprint kind: %w", err)
	}
	return offer{export: export, owner: HomeExport, specHash: digest(spec)[:16], crd: definition}, nil
}
