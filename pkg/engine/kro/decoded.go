package kro

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// asDecoded is a copy of a definition as everybody has it who has read it from an API server. kro's own, made in
// memory, gives maps a schema for their values but does not say that values are allowed, which only decoding adds;
// validation would refuse every key.
func asDecoded(from *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encode the definition: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(data, crd); err != nil {
		return nil, fmt.Errorf("decode the definition: %w", err)
	}
	return crd, nil
}

// kroRuleMessage is what kro has every rule say when it is violated.
const kroRuleMessage = "validation failed"

// tellRules lets violated rules say which they are: without a message of their own, apiextensions shows the rule.
func tellRules(schema *apiextensionsv1.JSONSchemaProps) {
	for i := range schema.XValidations {
		if schema.XValidations[i].Message == kroRuleMessage {
			schema.XValidations[i].Message = ""
		}
	}
	for name, property := range schema.Properties {
		tellRules(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		tellRules(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		tellRules(schema.AdditionalProperties.Schema)
	}
}
