package integration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type resourceName = schema.GroupVersionResource

// notes is an offering that a test may edit.
var notes = schema.GroupVersionResource{Group: "edit.example.org", Version: "v1alpha1", Resource: "notes"}

const noteBlueprint = `
apiVersion: krop.opendefense.cloud/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: notes}
spec:
  schema:
    group: edit.example.org
    apiVersion: v1alpha1
    kind: Note
    spec: {text: string}
  resources:
  - id: %[1]s
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${schema.metadata.name}-%[1]s"}
      data: {text: "${schema.spec.text}"}
`

const noteBinding = `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: notes}
spec:
  reference: {export: {path: "root:offers", name: notes.edit.example.org}}
  permissionClaims:
  - {group: "", resource: configmaps, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
`

// publishNote publishes an offering with one child, called after its node.
func publishNote(provider actor, node string) {
	provider.t.Helper()
	_, err := bed.Kubectl(provider.user).Apply(provider.t.Context(), fmt.Sprintf(noteBlueprint, node))
	must(provider.t, err)
	provider.kubectl("wait", "--for=condition=Ready", "rgd/notes", "--timeout=30s")
}

func bindNote(consumer actor) {
	consumer.t.Helper()
	_, err := bed.Kubectl(consumer.user).Apply(consumer.t.Context(), noteBinding)
	must(consumer.t, err)
	consumer.kubectl("wait", "--for=condition=Ready", "apibinding/notes", "--timeout=60s")
}
