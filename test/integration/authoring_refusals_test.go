package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opendefense.cloud/krop/test/testbed"
)

// faulty is a blueprint with room for a mistake.
const faulty = `
apiVersion: krop.opendefense.cloud/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: faulty}
spec:
  schema:
    group: authoring.example.org
    apiVersion: v1alpha1
    kind: Faulty
    spec: {count: integer, name: string, tags: "[]string", tree: {leaf: string}}
%s
  resources:
%s
  - id: fine
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}
`

// mistakes are refused when the blueprint is applied: where, and in which words.
var mistakes = []struct {
	name             string
	schema, resource string
	field            string
	words            []string
}{
	{
		name:   "condition of krop's own",
		schema: `    status: {conditions: ['${runtime.newCondition({type: "Ready", status: "True"})}']}`,
		field:  "spec.schema.status.conditions[0]", words: []string{`"Ready"`, "krop's own"},
	},
	{
		name:   "status field of krop's own",
		schema: `    status: {composition: "${fine.metadata.name}"}`,
		field:  "spec.schema.status.composition", words: []string{"krop's own"},
	},
	{
		name:   "status without expression",
		schema: `    status: {text: fixed}`,
		field:  "spec.schema.status.text", words: []string{"expression"},
	},
	{
		name:   "status of an unknown field",
		schema: `    status: {text: "${schema.spec.nmae}"}`,
		field:  "spec.schema.status.text", words: []string{"nmae"},
	},
	{
		name:   "column of an unknown field",
		schema: `    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]`,
		field:  "spec.schema.additionalPrinterColumns[0].jsonPath", words: []string{`"size"`, "count"},
	},
	{
		name:   "types in a circle",
		schema: `    types: {A: {b: B}, B: {a: A}}`,
		field:  "spec.schema.types.A", words: []string{"A -> B -> A"},
	},
	{
		name:   "unknown scope",
		schema: `    scope: Global`,
		field:  "spec.schema.scope", words: []string{"Cluster", "Namespaced"},
	},
	{
		name:     "id",
		resource: `  - {id: not-camel, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[0].id", words: []string{"lowerCamelCase"},
	},
	{
		name:     "id twice",
		resource: `  - {id: fine, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[1].id", words: []string{"Duplicate", "spec.resources[0].id"},
	},
	{
		name: "cycle",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "${b.metadata.name}"}}}
  - {id: b, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: "${a.metadata.name}"}}}`,
		field: "spec.resources[0]", words: []string{"a -> b -> a"},
	},
	{
		name:     "nominal type",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "${schema.spec.count}"}}}`,
		field:    "spec.resources[0].template.data.x", words: []string{"expected string", "found int"},
	},
	{
		name:     "nominal type of a number",
		resource: `  - {id: a, template: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}, spec: {leaseDurationSeconds: "${schema.spec.name}"}}}`,
		field:    "spec.resources[0].template.spec.leaseDurationSeconds", words: []string{"expected int", "found string"},
	},
	{
		name:     "structural type",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: ["${schema.spec.tree}"]}}`,
		field:    "spec.resources[0].template.secrets[0]", words: []string{"leaf"},
	},
	{
		name:     "interpolated type",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "n: ${schema.spec.count}"}}}`,
		field:    "spec.resources[0].template.data.x", words: []string{"(string, int)"},
	},
	{
		name:     "unknown field in a template",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {x: y}}}`,
		field:    "spec.resources[0].template.dta", words: []string{"no such field", "data"},
	},
	{
		name:     "unknown field in an expression",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "${schema.spec.tree.laef}"}}}`,
		field:    "spec.resources[0].template.data.x", words: []string{`laef`},
	},
	{
		name:     "unknown resource in an expression",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "${fnie.data.x}"}}}`,
		field:    "spec.resources[0].template.data.x", words: []string{"fnie"},
	},
	{
		name:     "unknown kind",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMop, metadata: {name: a}}}`,
		field:    "spec.resources[0].template.kind", words: []string{"ConfigMop", "consumer"},
	},
	{
		name:     "includeWhen that gives no bool",
		resource: `  - {id: a, includeWhen: ["${schema.spec.name}"], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[0].includeWhen[0]", words: []string{"expected bool", "found string"},
	},
	{
		name:     "readyWhen that reads others",
		resource: `  - {id: a, readyWhen: ["${fine.metadata.name == 'x'}"], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[0].readyWhen[0]", words: []string{`"a"`, `"fine"`},
	},
	{
		name:     "forEach over no list",
		resource: `  - {id: a, forEach: [{number: "${schema.spec.count}"}], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${string(number)}"}}}`,
		field:    "spec.resources[0].forEach[0].number", words: []string{"expected a list", "found int"},
	},
	{
		name:     "forEach of eleven axes",
		resource: "  - {id: a, forEach: [" + elevenAxes() + `], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[0].forEach", words: []string{"11", "at most 10"},
	},
	{
		name:     "forEach with one name for all",
		resource: `  - {id: a, forEach: [{tag: "${schema.spec.tags}"}], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[0].forEach[0].tag", words: []string{"metadata.name"},
	},
	{
		name:     "omit in a name",
		resource: `  - {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${omit()}"}}}`,
		field:    "spec.resources[0].template.metadata.name", words: []string{"can't be left out"},
	},
	{
		name:     "definition of a kind with expressions",
		resource: `  - {id: a, target: provider, template: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: "${schema.spec.name}"}}}`,
		field:    "spec.resources[0].template.spec.group", words: []string{"only in its metadata"},
	},
	{
		name:     "namespace on a cluster-scoped child",
		resource: `  - {id: a, template: {apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}}`,
		field:    "spec.resources[0].template.metadata.namespace", words: []string{"cluster-scoped"},
	},
	{
		name:     "no namespace in the provider's workspace",
		resource: `  - {id: a, target: provider, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`,
		field:    "spec.resources[0].template.metadata.namespace", words: []string{"provider"},
	},
}

func elevenAxes() string {
	var axes []string
	for axis := 'a'; axis <= 'k'; axis++ {
		axes = append(axes, fmt.Sprintf(`{%c: "${['x']}"}`, axis))
	}
	return strings.Join(axes, ", ")
}

// TestAuthoringMistakesAreRefusedWhenTheyAreApplied has kubectl say what is wrong, and where.
func TestAuthoringMistakesAreRefusedWhenTheyAreApplied(t *testing.T) {
	provider := theOffers(t)
	if _, err := bed.Kubectl(provider.user).Apply(t.Context(), fmt.Sprintf(faulty, "", ""), "--dry-run=server"); err != nil {
		t.Fatalf("without a mistake it isn't accepted: %v", err)
	}
	for _, mistake := range mistakes {
		t.Run(mistake.name, func(t *testing.T) {
			_, err := bed.Kubectl(provider.user).Apply(t.Context(), fmt.Sprintf(faulty, mistake.schema, mistake.resource))
			var refused *testbed.CommandError
			if !errors.As(err, &refused) {
				t.Fatalf("the answer is %v, want a refusal", err)
			}
			for _, want := range append([]string{mistake.field + ":"}, mistake.words...) {
				if !strings.Contains(refused.Stderr, want) {
					t.Errorf("kubectl doesn't say %q:\n%s", want, refused.Stderr)
				}
			}
		})
	}
}

// everyKindOfMistake has one that each of krop's checks finds: the schema of blueprints, structure, kinds, literals,
// types, CEL, status, columns, claims, and the rights of krop's user in the workspace and on the host.
const everyKindOfMistake = `
apiVersion: krop.opendefense.cloud/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: everything}
spec:
  schema:
    group: authoring.example.org
    apiVersion: v1alpha1
    kind: Everything
    spec: {count: integer, wrong: "integer | default=many"}
    status: {state: "${fine.metadata.name}"}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
  resources:
  - {id: fine, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}}
  - {id: kept, deletionPolicy: Keep, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}}
  - {id: not-camel, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: id}}}
  - {id: kind, template: {apiVersion: v1, kind: ConfigMop, metadata: {name: kind}}}
  - {id: field, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: field}, dta: {x: y}}}
  - {id: typed, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: typed}, data: {x: "${schema.spec.count}"}}}
  - {id: syntax, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: syntax}, data: {x: "${1 +}"}}}
  - {id: place, target: provider, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: place}}}
  - {id: claim, template: {apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: claim}}}
  - {id: right, target: provider, template: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: right, namespace: default}}}
  - {id: away, target: host, template: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: away, namespace: default}}}
`

// TestMistakesOfEveryKindAreRefusedInOneAnswer has kubectl say everything at once, so that who repairs it is through.
func TestMistakesOfEveryKindAreRefusedInOneAnswer(t *testing.T) {
	provider := theOffers(t)
	_, err := bed.Kubectl(provider.user).Apply(t.Context(), everyKindOfMistake)
	var refused *testbed.CommandError
	if !errors.As(err, &refused) {
		t.Fatalf("the answer is %v, want a refusal", err)
	}
	for _, want := range []string{
		"* spec.resources[1].deletionPolicy: Unsupported value",
		"* spec.schema.spec.wrong: ",
		"* spec.schema.status.state: ",
		"* spec.schema.additionalPrinterColumns[0].jsonPath: ",
		"* spec.resources[2].id: ",
		"* spec.resources[3].template.kind: ",
		"* spec.resources[4].template.dta: ",
		"* spec.resources[5].template.data.x: ",
		"* spec.resources[6].template.data.x: ",
		"* spec.resources[7].template.metadata.namespace: ",
		"* spec.resources[8]: ",
		"* spec.resources[9]: krop's user may not get, list, watch, create, update, patch, delete leases.coordination.k8s.io in the workspace ",
		"* spec.resources[10]: krop's user may not get, list, watch, create, update, patch, delete leases.coordination.k8s.io on the host, ",
	} {
		if !strings.Contains(refused.Stderr, want) {
			t.Errorf("kubectl doesn't say %q:\n%s", want, refused.Stderr)
		}
	}
}
